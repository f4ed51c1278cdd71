"""Read, plan, write, read again: against an API server in memory with other writers.

survey.py is tested here too, local_coredns.py in tests/peers/test_local_coredns.py.
"""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx2
import pytest
import trio.testing
from trio.testing import MockClock

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.install.run import applying
from dnsproxy.install.run.applying import ATTEMPTS, WRITES, Settled
from dnsproxy.install.run.survey import InstallRequest
from sidecar.kubernetes.cluster import Tls
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from tests.dnsproxy.cluster_dns.test_own_service import deployment, pods, service
from tests.dnsproxy.corefile.shapes import address
from tests.kit.faulty_api import AUTHORITY, cluster_at
from tests.kit.manifest_api import FakeApi
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan_out, play, without_versions

Before = Callable[[FakeApi, httpx2.Request], None]
WHERE = ServiceRef()


class Killed(BaseException):
    """The end of the process, at this request."""


@dataclass
class Meddling(httpx2.AsyncBaseTransport):
    """An API server to which something happens before, or after, it answers."""

    api: FakeApi
    before: Before | None = None
    after: Before | None = None
    killed_at: int = 0
    """The number of the request at which the process ends; 0 for none."""
    late: bool = False
    """Whether the API server still answers that."""
    requests: list[httpx2.Request] = field(default_factory=list)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        ends = len(self.requests) == self.killed_at
        if ends and not self.late:
            raise Killed
        if self.before:
            self.before(self.api, request)
        response = self.api.answer(request)
        if ends:
            raise Killed
        if self.after:
            self.after(self.api, request)
        return response

    @property
    def writes(self) -> int:
        return sum(request.method != "GET" for request in self.requests)


@asynccontextmanager
async def client_of(transport: httpx2.AsyncBaseTransport) -> AsyncIterator[ApiClient]:
    # A certificate of one's own to trust: reading the operating system's takes longer than all the rest.
    cluster = replace(cluster_at("http://api.example.org"), tls=Tls(ca=AUTHORITY))
    async with ApiClient(cluster, transport=transport) as client:
        yield client


def cluster(name: str = "kubeadm") -> list[Manifest]:
    return [*manifests(name), service(), pods(True), deployment()]


def install_request(method: Method | None = None, *zones: str, **options: Any) -> InstallRequest:
    return InstallRequest(WHERE, ObjectRef("switchback", "dnsproxy"), method, zones=zones, **options)


async def install(transport: Meddling, wanted: InstallRequest | None = None) -> Settled:
    async with client_of(transport) as client:
        look = partial(applying.plan, client, wanted or install_request())
        return await applying.settle(client, look, await look())


async def uninstall(transport: Meddling) -> Settled:
    async with client_of(transport) as client:
        look = partial(applying.plan_out, client, WHERE)
        return await applying.settle(client, look, await look())


def corefile(api: FakeApi) -> str:
    return str(pick(api.objects, "ConfigMap", "coredns")["data"]["Corefile"])


def touch(api: FakeApi, name: str = "coredns", **data: str) -> None:
    """Somebody else writes to a ConfigMap."""
    one = pick(api.objects, "ConfigMap", name)
    one.setdefault("data", {}).update(data)
    one["metadata"]["resourceVersion"] = str(int(one["metadata"]["resourceVersion"]) + 1000)


async def test_one_write_one_look_after_it_and_none_the_second_time() -> None:
    transport = Meddling(FakeApi(cluster()))
    settled = await install(transport)
    assert (settled.wrote, settled.reverted, transport.writes) == (True, False, 1)
    assert settled.last.wanted is not None
    assert [str(one) for one in settled.last.wanted.addresses] == ["10.96.0.53:53"]
    assert transport.requests[-1].method == "GET"
    again = await install(transport)
    assert (again.wrote, again.edits.changed, transport.writes) == (False, False, 1)
    out = await uninstall(transport)
    assert (out.wrote, transport.writes) == (True, 2)
    assert without_versions(transport.api.objects) == without_versions(cluster())
    assert not (await uninstall(transport)).wrote


async def test_a_stanza_with_both_addresses_of_the_service_gets_its_primary_address_alone() -> None:
    transport = Meddling(FakeApi(cluster()))
    both = (address("10.96.0.53"), address("fd00::53"))
    named = install_request(addresses=both)
    await install(transport, named)
    assert "forward . 10.96.0.53 fd00::53 /etc/resolv.conf" in corefile(transport.api)
    assert not (await install(transport, named)).wrote
    assert (await install(transport)).wrote
    assert "forward . 10.96.0.53 /etc/resolv.conf" in corefile(transport.api)
    assert not (await install(transport)).wrote


@pytest.mark.parametrize("times", [1, 2, ATTEMPTS - 2])
async def test_who_writes_between_our_read_and_our_write_is_not_overwritten(
    times: int, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock  # nobody waits for the pauses
    left = [times]

    def meddle(api: FakeApi, request: httpx2.Request) -> None:
        if request.method != "GET" and left[0]:
            left[0] -= 1
            touch(api, theirs=str(left[0]), Corefile="# theirs\n" + corefile(api))

    transport = Meddling(FakeApi(cluster()), meddle)
    settled = await install(transport)
    assert settled.wrote
    assert corefile(transport.api).startswith("# theirs\n" * times)
    assert "BEGIN switchback" in corefile(transport.api)
    assert pick(transport.api.objects, "ConfigMap", "coredns")["data"]["theirs"] == "0"


async def test_somebody_who_never_rests_is_told_and_nothing_is_forced(autojump_clock: trio.testing.MockClock) -> None:
    del autojump_clock  # as above

    def meddle(api: FakeApi, request: httpx2.Request) -> None:
        if request.method != "GET":
            touch(api, theirs="x")

    transport = Meddling(FakeApi(cluster()), meddle)
    with pytest.raises(ChangeRefused, match="kube-system/coredns was changed by another writer before each write"):
        await install(transport)
    assert transport.writes == ATTEMPTS
    assert "switchback" not in corefile(transport.api)


async def test_an_owner_that_undoes_it_is_not_fought() -> None:
    stock = corefile(FakeApi(cluster()))

    def undo(api: FakeApi, request: httpx2.Request) -> None:
        if request.method != "GET":
            touch(api, Corefile=stock)

    transport = Meddling(FakeApi(cluster()), after=undo)
    settled = await install(transport)
    assert (settled.wrote, settled.reverted, transport.writes) == (True, True, WRITES)


async def test_two_who_make_the_same_config_map_come_to_one() -> None:
    """The second finds it there: an object that was made meanwhile is a conflict, and looked at again."""
    other = FakeApi(cluster("k3s"))
    await install(Meddling(other), install_request(None, "example.org"))
    made = pick(other.objects, "ConfigMap", "coredns-custom")

    def meddle(api: FakeApi, request: httpx2.Request) -> None:
        if request.method != "GET" and made not in api.objects:
            api.objects = [*api.objects, made]

    transport = Meddling(FakeApi(cluster("k3s")), meddle)
    settled = await install(transport, install_request(None, "example.org"))
    assert not settled.last.edits.changed
    assert [one["metadata"]["name"] for one in transport.api.objects].count("coredns-custom") == 1


async def test_a_config_map_that_goes_meanwhile_is_looked_for_again() -> None:
    def meddle(api: FakeApi, request: httpx2.Request) -> None:
        if request.method != "GET" and transport.writes == 1:
            api.objects = [one for one in api.objects if one is not pick(api.objects, "ConfigMap", "coredns")]

    transport = Meddling(FakeApi(cluster()), meddle)
    with pytest.raises(ChangeRefused, match="no ConfigMap has"):
        await install(transport)


WAYS = [
    ("kubeadm", install_request()),
    ("k3s", install_request(None, "example.org")),
    ("gke", install_request(None, "example.org")),
]


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("name", "wanted"), WAYS, ids=[name for name, _ in WAYS])
async def test_killed_at_any_request_it_leaves_one_state_or_the_other_and_is_finished_by_the_next_run(
    name: str, wanted: InstallRequest, *, late: bool
) -> None:
    before = cluster(name)
    whole = Meddling(FakeApi(copy.deepcopy(before)))
    await install(whole, wanted)
    installed = without_versions(whole.api.objects)
    states = [without_versions(before), installed]
    count = len(whole.requests)
    await uninstall(whole)
    for number in range(1, len(whole.requests) + 1):
        transport = Meddling(FakeApi(copy.deepcopy(before)), killed_at=number, late=late)
        assert await is_killed(transport, wanted)
        assert without_versions(transport.api.objects) in states
        # Whoever was killed last: the next run gets there from every state.
        rest = Meddling(transport.api)
        if number <= count:
            await install(rest, wanted)
            assert without_versions(rest.api.objects) == installed
        await uninstall(rest)
        assert without_versions(rest.api.objects) == states[0]


async def is_killed(transport: Meddling, wanted: InstallRequest) -> bool:
    """An install, and then an uninstall; whether it was ended."""
    ended = False
    try:
        await install(transport, wanted)
        await uninstall(transport)
    except* Killed:
        ended = True
    return ended


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_killed_between_two_methods_there_is_never_nothing(*, late: bool) -> None:
    first = Meddling(FakeApi(cluster("k3s")))
    await install(first, install_request(None, "example.org"))
    start = list(first.api.objects)
    whole = Meddling(FakeApi(copy.deepcopy(start)))
    await install(whole, install_request(Method.COREFILE))
    assert whole.writes == 2
    for number in range(1, len(whole.requests) + 1):
        transport = Meddling(FakeApi(copy.deepcopy(start)), killed_at=number, late=late)
        assert await is_killed(transport, install_request(Method.COREFILE))
        traces = find_traces(discover(transport.api.objects))
        assert traces
        assert not any(trace.fault for trace in traces)
        left = play(transport.api.objects, plan_out(transport.api.objects))
        assert without_versions(left) == without_versions(cluster("k3s"))


@pytest.mark.parametrize(
    ("path", "missing"),
    [("/configmaps/coredns", "patch configmaps coredns in namespace kube-system")],
)
async def test_who_may_not_write_is_told_verb_and_object(path: str, missing: str) -> None:
    transport = Meddling(FakeApi(cluster(), forbidden_writes=[path]))
    with pytest.raises(StartError, match=f"not allowed to {missing}.*--dry-run prints") as error:
        await install(transport)
    assert error.value.status == 3
    assert without_versions(transport.api.objects) == without_versions(cluster())


@pytest.mark.parametrize("end", ["/services/kube-dns", "/configmaps/coredns", "/deployments", "/services/dnsproxy"])
async def test_nothing_is_written_on_what_was_seen_in_part(end: str) -> None:
    transport = Meddling(FakeApi(cluster(), forbidden=[end]))
    with pytest.raises(StartError, match="not allowed to") as error:
        await install(transport)
    assert (error.value.status, transport.writes) == (3, 0)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (422, ChangeRefused, "rejects the change: 422"),
        (413, ChangeRefused, "rejects the change: 413"),
        (500, StartError, "may or may not be written: 500"),
        (429, StartError, "may or may not be written: 429"),
        (401, StartError, "may or may not be written: 401"),
    ],
)
async def test_an_answer_that_is_no_yes_is_told(status: int, kind: type[Exception], text: str) -> None:
    class Refusing(Meddling):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.method == "GET":
                return await super().handle_async_request(request)
            return httpx2.Response(status, content=_chunks(json.dumps({"message": "no", "code": status}).encode()))

    with pytest.raises(kind, match=text):
        await install(Refusing(FakeApi(cluster())))


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([*manifests("kubeadm")], "there is no Service dnsproxy in namespace switchback"),
        ([*manifests("kubeadm"), service(), pods(False), deployment()], "no pod behind Service switchback/dnsproxy"),
        ([*manifests("kubeadm"), service(), pods(True), deployment(dnsPolicy="ClusterFirst")], "ask each other"),
        ([*manifests("rke2"), service(), pods(True), deployment()], "dnsproxy install --method print"),
        ([service(), pods(True), deployment()], "there is no Service kube-dns in namespace kube-system"),
        (cluster("k3s"), "zones have to be named"),
    ],
    ids=["no Service", "not ready", "a loop", "an owner", "no DNS", "no host"],
)
async def test_what_does_not_fit_is_refused_before_anything_is_written(
    objects: list[Manifest], reason: str, clock: MockClock
) -> None:
    transport = Meddling(FakeApi(objects))
    with pytest.raises(ChangeRefused, match=reason):
        await install(transport)
    assert transport.writes == 0


async def test_an_address_that_was_given_is_taken_as_it_is() -> None:
    transport = Meddling(FakeApi(manifests("kubeadm")))
    await install(transport, install_request(addresses=(address("192.0.2.53"),)))
    assert "forward . 192.0.2.53 /etc/resolv.conf" in corefile(transport.api)
    assert not any("switchback" in request.url.path for request in transport.requests)


async def test_zones_come_from_the_hosts_of_ingresses(clock: MockClock) -> None:
    hosts = [{"host": "a.b.example.co.uk"}, {"host": "*.example.org"}, {"host": "x.cluster.local"}]
    ingress = {"kind": "Ingress", "metadata": {"name": "x", "namespace": "web"}, "spec": {"rules": hosts}}
    transport = Meddling(FakeApi([*cluster("k3s"), ingress]))
    settled = await install(transport)
    assert settled.edits.zones == ("example.co.uk", "example.org")
    assert settled.first.survey is not None
    assert settled.first.survey.zones_from == "the hosts of the cluster's Ingresses"


def beside_a_block_of_others(*hosts: str) -> FakeApi:
    """A cluster that serves example.net itself, with an Ingress."""
    theirs = {"corp.server": "example.net:53 {\n    forward . 198.51.100.53\n}\n"}
    metadata = {"name": "coredns-custom", "namespace": "kube-system", "resourceVersion": "7"}
    custom = {"kind": "ConfigMap", "metadata": metadata, "data": theirs}
    rules = [{"host": host} for host in hosts]
    ingress = {"kind": "Ingress", "metadata": {"name": "x", "namespace": "web"}, "spec": {"rules": rules}}
    kept = [one for one in cluster("k3s") if one["metadata"]["name"] != "coredns-custom"]
    return FakeApi([*kept, custom, ingress])


async def test_a_host_in_a_zone_that_is_refused_keeps_no_other_zone_from_being_installed(clock: MockClock) -> None:
    hosts = ["www.example.net", "www.example.org", "x.10.in-addr.arpa"]
    settled = await install(Meddling(beside_a_block_of_others(*hosts)))
    assert (settled.wrote, settled.last.edits.zones) == (True, ("example.org",))
    left = [note for note in settled.edits.notes if note.startswith("left out: ")]
    assert "10.in-addr.arpa contains the cluster's own names" in left[0]
    assert "example.net is served by a server block already" in left[1]


@pytest.mark.parametrize("zones", [(), ("example.net", "example.org")], ids=["the only one", "named by the user"])
async def test_a_zone_that_is_refused_is_refused_if_it_is_the_only_one_or_named(
    zones: tuple[str, ...], clock: MockClock
) -> None:
    transport = Meddling(beside_a_block_of_others("www.example.net"))
    with pytest.raises(ChangeRefused, match=r"example\.net is served by a server block already"):
        await install(transport, install_request(None, *zones))
    assert transport.writes == 0


async def test_zones_that_cannot_be_looked_up_have_to_be_named(clock: MockClock) -> None:
    transport = Meddling(FakeApi(cluster("k3s"), forbidden=["/ingresses"]))
    with pytest.raises(StartError, match=r"not allowed to list ingresses.*name them with --zone") as error:
        await install(transport)
    assert (error.value.status, transport.writes) == (3, 0)
