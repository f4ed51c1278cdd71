"""`dnsproxy tap --service` through a real kube-apiserver to a real `dnsproxy serve`.

There is no kubelet: the pods are objects with an address of this machine, where one server answers for all of them. The
API server refuses to dial a loopback address.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.conftest import refuse
from tests.dnsproxy.tap_command.taps import Running, running
from tests.kit.accounts import create_account, role, write_kubeconfig
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.ports import free_port
from tests.kit.serve_inside import ask
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

NAMESPACE: Final = "switchback"
NAME: Final = "app.example.org"
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}"
SERVICE: Final = f"{NAMESPACE}/dnsproxy"
SLICES: Final = [{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]
PROXY: Final = [{"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}]


def own_address() -> str:
    """An address of this machine that is not loopback; empty without one. Nothing is sent."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        found = str(probe.getsockname()[0])
        return "" if found.startswith("127.") else found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A separate API server, with the Service and its pods."""
    if not own_address():
        refuse("this machine has no address but loopback")
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        one.create_namespace(NAMESPACE)
        spec = {"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]}
        one.request("POST", f"{PATH}/services", {"metadata": {"name": "dnsproxy"}, "spec": spec})
        for pod in ("pod-a", "pod-b", "pod-without-address"):
            containers = [{"name": "dnsproxy", "image": "localhost/switchback"}]
            one.request("POST", f"{PATH}/pods", {"metadata": {"name": pod}, "spec": {"containers": containers}})
        for pod in ("pod-a", "pod-b"):
            # What a kubelet reports.
            status = {"status": {"podIP": own_address(), "podIPs": [{"ip": own_address()}]}}
            one.request("PATCH", f"{PATH}/pods/{pod}/status", status, content_type="application/merge-patch+json")
        yield one


@pytest.fixture(scope="module")
def kubeconfig(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an account with the rights that --help names, and no other."""
    token = create_account(server, NAMESPACE, "reader", [role(NAMESPACE, [*SLICES, *PROXY])])
    return write_kubeconfig(server, token, tmp_path_factory.mktemp("reader") / "kubeconfig")


def put_pods(server: ApiServer, *pods: str) -> None:
    """Let these pods be the ready ones of the Service."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    endpoints = [
        {
            "addresses": [own_address()],
            "conditions": {"ready": True},
            "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": pod},
        }
        for pod in pods
    ]
    metadata = {"name": "dnsproxy-x", "labels": {"kubernetes.io/service-name": "dnsproxy"}}
    one: dict[str, Any] = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []}
    if any(item["metadata"]["name"] == "dnsproxy-x" for item in server.request("GET", path)["items"]):
        server.request("PUT", f"{path}/dnsproxy-x", one)
    else:
        server.request("POST", path, one)


@contextmanager
def replica(folder: Path, *flags: str) -> Iterator[tuple[Serving, int]]:
    """One server for all pods: they have one address and one port. With the number of its admin port."""
    port = free_port()
    where = ("--host", f"{NAME}=192.0.2.10", "--admin", f"{own_address()}:{port}")
    with serving(folder, *where, *flags) as ours:
        yield ours, port


def tap(kubeconfig: Path, port: int, *arguments: str) -> AbstractAsyncContextManager[Running]:
    place = ("--service", SERVICE, "--admin-port", str(port), "--kubeconfig", str(kubeconfig))
    return running(*place, "--output", "json", *arguments)


@asynccontextmanager
async def asking(ours: Serving) -> AsyncIterator[None]:
    """The name is asked for again and again: nothing shows from outside when a pod is listened to."""

    async def ask_again() -> None:
        while True:
            await ask(ours.endpoint, NAME)  # each round waits for its reply

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_again)
        yield
        nursery.cancel_scope.cancel()


async def test_all_pods_are_seen_and_those_that_come_too(server: ApiServer, kubeconfig: Path, tmp_path: Path) -> None:
    await in_thread(put_pods, server, "pod-a")
    with replica(tmp_path) as (ours, port):
        async with tap(kubeconfig, port, NAME) as shown, asking(ours):
            await shown.read_until(b'"pod": "pod-a"')
            await in_thread(put_pods, server, "pod-a", "pod-b")
            await shown.read_until(b'"pod": "pod-b"')
            shown.process.send_signal(signal.SIGINT)
            status, output, errors = await shown.end()
    assert status == 0
    assert [one for one in errors.splitlines() if "queries are missing here, of pod" not in one] == []
    documents = [json.loads(line) for line in output.splitlines()]
    assert {(one["qname"], one["outcome"], one["rule"], one["client"]) for one in documents} == {
        (NAME, "table", NAME, "127.0.0.1")
    }
    together = [one["time"] for one in documents[-20:]]
    assert together == sorted(together)


async def test_a_pod_that_cannot_be_asked_is_noted_and_the_other_is_shown(
    server: ApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    await in_thread(put_pods, server, "pod-a", "pod-without-address")
    with replica(tmp_path) as (ours, port):
        async with tap(kubeconfig, port, "--count", "3") as shown, asking(ours):
            status, output, errors = await shown.end()
    assert (status, len(output.splitlines())) == (0, 3)
    assert errors.startswith("Note: pod pod-without-address: ")
    assert len(errors.splitlines()) == 1


async def test_a_missing_right_is_status_3_and_names_it(server: ApiServer, tmp_path: Path) -> None:
    await in_thread(put_pods, server, "pod-a")
    token = await in_thread(create_account, server, NAMESPACE, "lister", [role(NAMESPACE, SLICES)])
    poor = write_kubeconfig(server, token, tmp_path / "kubeconfig")
    with replica(tmp_path) as (_, port):
        async with tap(poor, port) as shown:
            status, output, errors = await shown.end()
    assert (status, output) == (3, "")
    assert f"Error: --service {SERVICE}: the right to get pods/proxy in the namespace {NAMESPACE} is missing" in errors


async def test_a_tap_that_is_off_shows_nothing_and_is_status_3(
    server: ApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    await in_thread(put_pods, server, "pod-a")
    with replica(tmp_path, "--tap", "off") as (ours, port):
        async with tap(kubeconfig, port, "--seconds", "10") as shown, asking(ours):
            status, output, errors = await shown.end()
    assert (status, output) == (3, "")
    assert errors.splitlines() == [
        "Note: pod pod-a: the tap is off (--tap off)",
        f"Error: --service {SERVICE}: pod pod-a: the tap is off (--tap off)",
    ]


def test_the_name_by_which_the_api_server_is_asked_does_not_matter(server: ApiServer, tmp_path: Path) -> None:
    """It passes on the Host of its client, which is no name of the pod."""
    with replica(tmp_path) as (_, port), server.connection() as connection:
        headers = {"Host": "api.example.org:6443", "Authorization": f"Bearer {server.token}"}
        connection.request("GET", f"{PATH}/pods/pod-a:{port}/proxy/tap", headers=headers)
        response = connection.getresponse()
        assert (response.status, response.read(1)) == (200, b"\n")
        assert response.headers["Content-Type"] == "application/x-ndjson"
