"""A target Service whose endpoints come and go on a real kube-apiserver, followed by a real `dnsproxy serve`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.kit import serve_inside
from tests.kit.accounts import cluster_role, create_account, role, write_kubeconfig
from tests.kit.apiserver import ApiServer, in_thread
from tests.kit.polling import pause
from tests.kit.ready_services import delete_endpoint, put_endpoint
from tests.kit.serve_inside import addresses_in, ask, get
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

RELAY, FIXED = "10.96.0.90", "192.0.2.44"
KEY: Final = "edge-endpoints/relay"
HOST, OWN = "app.endpoints.example.org", "own.endpoints.example.org"
SECONDS: Final = 20.0
"""From a write of an EndpointSlice to the answers that follow it; generous, for a machine under load."""


@pytest.fixture(scope="module")
def namespace(apiserver: ApiServer) -> str:
    namespace, _, _ = KEY.partition("/")
    apiserver.create_namespace(namespace)
    return namespace


@pytest.fixture
def cluster(apiserver: ApiServer, namespace: str) -> Iterator[ApiServer]:
    _, _, name = KEY.partition("/")
    spec = {"clusterIP": RELAY, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]}
    path = f"/api/v1/namespaces/{namespace}/services"
    apiserver.request("POST", path, {"metadata": {"name": name}, "spec": spec})
    apiserver.create_ingress("endpoints", [HOST, "*.wild.endpoints.example.org"])
    yield apiserver
    apiserver.delete_ingress("endpoints")
    delete_endpoint(apiserver, KEY)
    apiserver.request("DELETE", f"{path}/{name}")


@contextmanager
def following(folder: Path, kubeconfig: Path, *flags: str) -> Iterator[Serving]:
    where = ("--upstream", "127.0.0.1:9", "--kubeconfig", str(kubeconfig), "--source", "ingress")
    with serving(folder, *where, "--target", f"service:{KEY}", "--host", f"{OWN}={FIXED}", *flags) as one:
        yield one


async def until_ready(ours: Serving) -> None:
    while (await get(ours.admin_endpoint, "/readyz"))[0] != 200:
        await pause()


async def until_answered(ours: Serving, name: str, *addresses: str) -> None:
    """Each question waits for its reply; without addresses, until it is forwarded."""
    with trio.fail_after(30):
        await serve_inside.until_answered(ours.endpoint, name, *addresses)


async def test_names_are_forwarded_within_a_second_of_the_last_endpoint_and_back_with_the_first(
    cluster: ApiServer, tmp_path: Path
) -> None:
    """The relay scaled to 0, its pods not ready, its slice gone, and its node lost look like this to everybody."""
    states = (("ready", RELAY), ("not ready", None), ("ready", RELAY), ("gone", None), ("ready", RELAY))
    with following(tmp_path, cluster.kubeconfig) as ours:
        await until_ready(ours)
        assert addresses_in(await ask(ours.endpoint, HOST)) == []
        for state, address in states:
            begun = time.monotonic()
            if state == "gone":
                await in_thread(delete_endpoint, cluster, KEY)
            else:
                await in_thread(put_endpoint, cluster, KEY, ready=state == "ready")
            for name in (HOST, "x.wild.endpoints.example.org"):
                await until_answered(ours, name, *([address] if address else []))
            took = time.monotonic() - begun
            assert took < SECONDS
            assert addresses_in(await ask(ours.endpoint, OWN)) == [FIXED]
            explained = (await get(ours.admin_endpoint, f"/explain?name={HOST}"))[1]
            assert ("no endpoint of its target is ready" in explained) is (address is None)
            assert ours.metric("dnsproxy_target_services_unready") == (address is None)
            assert (await get(ours.admin_endpoint, "/readyz"))[0] == 200
    log = ours.log.read_text()
    assert log.count("no endpoint of the target is ready") == 3
    assert log.count("target has addresses") == 3


async def test_a_restart_while_no_endpoint_is_ready_does_not_answer_from_the_snapshot(
    cluster: ApiServer, tmp_path: Path
) -> None:
    snapshot = tmp_path / "snapshot"
    await in_thread(put_endpoint, cluster, KEY)
    with following(tmp_path, cluster.kubeconfig, "--snapshot", str(snapshot)) as ours:
        await until_answered(ours, HOST, RELAY)
        while not (snapshot.exists() and RELAY.encode() in snapshot.read_bytes()):  # noqa: ASYNC110  # another process
            await trio.sleep(0.05)
        await in_thread(put_endpoint, cluster, KEY, ready=False)
        await until_answered(ours, HOST)
    with following(tmp_path, cluster.kubeconfig, "--snapshot", str(snapshot)) as ours:
        await until_answered(ours, HOST)
        await until_answered(ours, OWN, FIXED)


async def test_without_the_right_to_read_the_slices_it_answers_as_before(cluster: ApiServer, tmp_path: Path) -> None:
    """An installation whose Role is older than this server."""
    kubeconfig = await in_thread(old_account, cluster, tmp_path / "kubeconfig")
    with following(tmp_path, kubeconfig) as ours:
        await until_ready(ours)
        await until_answered(ours, HOST, RELAY)
        assert "its EndpointSlices cannot be read" in (await get(ours.admin_endpoint, "/"))[1]


def old_account(server: ApiServer, path: Path) -> Path:
    namespace, _, name = KEY.partition("/")
    reads = {"verbs": ["list", "watch"]}
    everywhere = [
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "ingressclasses"], **reads},
        {"apiGroups": [""], "resources": ["namespaces"], **reads},
    ]
    there = [{"apiGroups": [""], "resources": ["services"], "resourceNames": [name], **reads}]
    token = create_account(server, namespace, "dnsproxy", [cluster_role(everywhere), role(namespace, there)])
    return write_kubeconfig(server, token, path)
