from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.sync import mix
from tests.bench.sync.etcd import Etcd
from tests.bench.sync.mix import KINDS
from tests.bench.sync.mixed_filling import Template, fill_mixed, wait_cached
from tests.kit.apiserver import ApiServer, running_apiserver

COUNT = 300
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def stored(number: int) -> bytes:
    """A name, a host, a namespace, a Gateway and a uid, among octets that are no text."""
    names = (mix.name_of(number), mix.hostname_of(number), mix.namespace_of(number), mix.gateway_of(number), UID)
    return b"".join(b"k8s\0\xff" + bytes([len(name)]) + name.encode() for name in names)


@pytest.mark.parametrize("number", [0, 1, 19, 20, 99_999, 1_000_000])
def test_a_copy_differs_in_number_and_uid_and_not_in_length(number: int) -> None:
    copy = Template(KINDS[0], 0, UID, stored(0)).copy(number)
    uid = copy[-len(UID) :]
    assert copy == stored(number).replace(UID.encode(), uid)
    assert len(copy) == len(stored(0))


def test_every_copy_has_a_uid_of_its_own_and_the_same_in_each_run() -> None:
    template = Template(KINDS[0], 0, UID, UID.encode())
    copies = [template.copy(number) for number in range(1000)]
    assert len(set(copies)) == 1000
    assert copies == [template.copy(number) for number in range(1000)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A separate API server: definitions apply to the whole cluster."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        told: list[int] = []
        fill_mixed(one, COUNT, tell=told.append)
        assert told == [128, 256, 300]
        yield one


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "traefik-crds", "contour-crds", "openshift-crds")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_the_api_server_lists_the_copies_like_the_object_that_it_stored(server: ApiServer, kind: mix.MixedKind) -> None:
    items = server.request("GET", f"/apis/{kind.version}/{kind.plural}")["items"]
    numbers = [number for number in range(COUNT) if mix.kind_of(number) is kind]
    assert {one["metadata"]["name"] for one in items} == {mix.name_of(number) for number in numbers}
    assert len({one["metadata"]["uid"] for one in items}) == len(numbers)
    by_name = {one["metadata"]["name"]: one for one in items}
    for number in numbers:
        one = by_name[mix.name_of(number)]
        body = kind.body_of(number)
        assert one["metadata"]["namespace"] == mix.namespace_of(number)
        assert mix.hostname_of(number) in str(one["spec"])
        assert set(body["spec"]) <= set(one["spec"])
        assert bool(one.get("status")) is (kind.status_of is not None or kind.kind == "Ingress")


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "traefik-crds", "contour-crds", "openshift-crds")
def test_once_cached_every_kind_is_listed_from_the_cache(server: ApiServer) -> None:
    server.kill()
    server.start()
    wait_cached(server)
    for kind in KINDS:
        items = server.request("GET", f"/apis/{kind.version}/{kind.plural}?resourceVersion=0")["items"]
        assert len(items) == sum(mix.kind_of(number) is kind for number in range(COUNT))


@pytest.mark.peer("etcd", "kube-apiserver", "gateway-api", "traefik-crds", "contour-crds", "openshift-crds")
def test_what_is_there_is_not_written_again(server: ApiServer) -> None:
    key = mix.kind_of(5).key(5)
    with Etcd(server.etcd_port) as etcd:
        etcd.put(key, b"another")
        told: list[int] = []
        fill_mixed(server, COUNT, tell=told.append)
        assert (told, etcd.get(key)) == ([], b"another")
