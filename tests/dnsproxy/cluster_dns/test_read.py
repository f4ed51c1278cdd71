"""Reading a cluster over the API: rounds, refusals, and API servers that fail in every way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
import trio

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.read import Deadlines, discover, gather, load_client
from dnsproxy.cluster_dns.requests import INGRESS, Request
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from tests.kit.faulty_api import cluster_at
from tests.kit.manifest_api import FakeApi, respond
from tests.kit.manifest_cluster import NAMES, Manifest, faults_of, manifests
from tests.kit.manifest_cluster import discover as discover_offline

Handler = Callable[[httpx2.Request], httpx2.Response]


def client_of(handler: Handler) -> ApiClient:
    return ApiClient(cluster_at("http://api.example.org"), transport=httpx2.MockTransport(handler))


@pytest.mark.parametrize("name", NAMES)
async def test_over_the_api_the_same_is_found_as_from_the_objects(name: str) -> None:
    api = FakeApi(manifests(name))
    async with client_of(api.answer) as client:
        found = await discover(client)
    assert found == discover_offline(manifests(name))
    assert len(api.asked) == len(set(api.asked)) == len(found.asked)


async def test_only_get_is_used_and_a_selector_where_there_is_one() -> None:
    api = FakeApi(manifests("coredns-chart"))
    async with client_of(api.answer) as client:
        await discover(client, ServiceRef())
    assert {method for method, _, _ in api.asked} == {"GET"}
    assert ("GET", "/api/v1/namespaces/kube-system/services", "k8s-app in (kube-dns,coredns)") in api.asked


@pytest.mark.parametrize("expires", [0, 1], ids=["all chunks in time", "a chunk that comes too late"])
async def test_a_long_list_is_read_in_chunks_and_is_whole(expires: int) -> None:
    made: list[Manifest] = [
        {"kind": "Ingress", "metadata": {"name": f"i{number}", "namespace": "a"}} for number in range(1200)
    ]
    everything = Request(INGRESS, "")
    api = FakeApi(made, expires=expires)
    async with client_of(api.answer) as client:
        answers = await gather(client, lambda answers: () if everything in answers else (everything,))
    assert [one.metadata.name for one in answers[everything]] == [one["metadata"]["name"] for one in made]
    assert len(api.limits) == 2 * (1 + expires)
    assert all(api.limits)


async def test_a_list_with_one_object_of_another_shape_is_a_fault() -> None:
    objects = manifests("kubeadm")
    bad = {"kind": "Deployment", "metadata": {"name": "x", "namespace": "kube-system"}, "spec": {"replicas": "two"}}
    async with client_of(FakeApi([*objects, bad]).answer) as client:
        found = await discover(client)
    assert "list deployments.apps in namespace kube-system is unreadable" in faults_of(found)[0]


async def test_a_refusal_by_rbac_is_a_fault_and_the_rest_is_read() -> None:
    api = FakeApi(manifests("gke"), forbidden=["/deployments"])
    async with client_of(api.answer) as client:
        found = await discover(client)
    assert faults_of(found) == [
        "not allowed to list deployments.apps in namespace kube-system; grant list on it: 403: no rule allows it"
    ]
    assert found.node_local is not None
    assert not found.complete


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"metadata": {}}', b'{"metadata": {"name": 7}}', b"\xff\xfe", b"<html>", b"[" * 100_000],
    ids=["nothing", "cut", "a list", "no name", "a number", "no UTF-8", "HTML", "deep"],
)
async def test_a_body_that_is_not_an_object_is_a_fault(body: bytes) -> None:
    async with client_of(lambda _request: respond(200, body)) as client:
        found = await discover(client)
    assert all("is unreadable" in text for text in faults_of(found))
    assert not found.complete


async def test_a_list_with_null_for_its_items_is_empty() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/kube-dns"):
            return FakeApi(manifests("kubeadm")).answer(request)
        return respond(200, b'{"metadata": {}, "items": null}')

    async with client_of(answer) as client:
        found = await discover(client)
    assert "no Deployment and no DaemonSet" in faults_of(found)[0]


@pytest.mark.parametrize("status", [401, 429, 500, 503])
async def test_an_api_server_that_does_not_answer_is_one_line_and_status_3(status: int) -> None:
    async with client_of(lambda _request: respond(status, b"<html>no</html>")) as client:
        with pytest.raises(StartError, match=f"could not be asked: {status}") as caught:
            await discover(client)
    assert caught.value.status == 3
    assert "http://api.example.org (the test)" in str(caught.value)


async def test_a_connection_that_breaks_is_one_line_and_status_3() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused", request=request)

    async with client_of(refuse) as client:
        with pytest.raises(StartError, match="connection refused") as caught:
            await discover(client)
    assert caught.value.status == 3


@pytest.mark.parametrize(
    ("deadlines", "message"),
    [
        (Deadlines(response=0.05), r"could not be asked: get services kube-dns in namespace kube-system: .* 0\.05 s$"),
        (Deadlines(rounds=0.05), r"could not be asked: not all answers came within 0\.05 s$"),
    ],
    ids=["one response", "all rounds"],
)
async def test_a_slow_api_server_has_a_deadline_and_the_error_names_it(deadlines: Deadlines, message: str) -> None:
    async def hang(_request: httpx2.Request) -> httpx2.Response:
        await trio.sleep_forever()
        raise AssertionError

    client = ApiClient(cluster_at("http://api.example.org"), transport=httpx2.MockTransport(hang))
    async with client:
        with pytest.raises(StartError, match=message) as caught:
            await discover(client, deadlines=deadlines)
    assert caught.value.status == 3


async def test_a_missing_kubeconfig_is_one_line_and_status_3(tmp_path: Any) -> None:
    with pytest.raises(StartError, match="does not exist") as caught:
        await load_client(kubeconfig=str(tmp_path / "none"), context=None)
    assert caught.value.status == 3
