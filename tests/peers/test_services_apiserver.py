"""Backends that are Services, against a real kube-apiserver; the test acts as the pods and the slice controller."""

from __future__ import annotations

import functools
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from proxy.admin.readiness import RouteProbe, check_routes
from proxy.backends.backend import Backend
from proxy.backends.health import Cause
from proxy.backends.service_watch import follow_services
from proxy.relay.relay import Relay, open_listeners
from proxy.routes import Quorum, Route, ServicePort
from proxy.settings import Settings
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.relaying import read_header, until

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

BRISK = Pace(watch_timeout=5, backoff_limit=2)
READY = {"ready": True, "serving": True, "terminating": False}
NOT_READY = {"ready": False, "serving": False, "terminating": False}
LEAVING = {"ready": False, "serving": True, "terminating": True}
GONE = {"ready": False, "serving": False, "terminating": True}

numbers = itertools.count()


class Cluster:
    """A namespace of the API server with a Service `ingress` that has the ports http and https."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.namespace = f"relay{next(numbers)}"
        server.create_namespace(self.namespace)
        self.services = f"/api/v1/namespaces/{self.namespace}/services"
        self.slices = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"

    def target(self, port: int | str = "https") -> ServicePort:
        return ServicePort(self.namespace, "ingress", port)

    def settings(self, *ports: int | str) -> Settings:
        routes = tuple(Route(Endpoint("127.0.0.1", 0), self.target(port)) for port in ports or ("https",))
        return Settings(routes=routes, kubeconfig=str(self.server.kubeconfig))

    def create_service(self) -> None:
        ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443, "targetPort": "tls"}]
        spec = {"ports": ports, "selector": {"app": "ingress"}}
        self.server.request("POST", self.services, {"metadata": {"name": "ingress"}, "spec": spec})

    def delete_service(self) -> None:
        self.server.request("DELETE", f"{self.services}/ingress")

    def put_slice(self, name: str, port: int, *endpoints: tuple[str, dict[str, bool]], family: str = "IPv4") -> None:
        """Create or replace one slice, whose pods have the same port named https."""
        labels = {"kubernetes.io/service-name": "ingress"}
        manifest = {
            "metadata": {"name": name, "labels": labels},
            "addressType": family,
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": told} for address, told in endpoints],
        }
        names = {one["metadata"]["name"] for one in self.server.request("GET", self.slices)["items"]}
        if name in names:
            self.server.request("PUT", f"{self.slices}/{name}", manifest)
        else:
            self.server.request("POST", self.slices, manifest)

    def delete_slice(self, name: str) -> None:
        self.server.request("DELETE", f"{self.slices}/{name}")


@pytest.fixture
def cluster(apiserver: ApiServer) -> Cluster:
    return Cluster(apiserver)


@asynccontextmanager
async def followed(cluster: Cluster, *ports: int | str) -> AsyncIterator[list[Backend]]:
    backends = [Backend(cluster.target(port), listeners=()) for port in ports or ("https",)]
    async with trio.open_nursery() as nursery:
        follow = functools.partial(follow_services, pace=BRISK)
        await nursery.start(follow, backends, cluster.settings(*ports))
        yield backends
        nursery.cancel_scope.cancel()


def shown(backend: Backend) -> list[str]:
    return [str(Endpoint(*address.sockaddr[:2])) for address in backend.addresses]


async def test_the_ready_pods_of_a_port_are_the_backend_by_name_and_by_number(cluster: Cluster) -> None:
    cluster.create_service()
    cluster.put_slice("a", 8443, ("192.0.2.1", READY), ("192.0.2.2", NOT_READY), ("192.0.2.3", LEAVING))
    cluster.put_slice("b", 9443, ("2001:db8::1", READY), family="IPv6")
    async with followed(cluster, "https", 443, 80, "smtp") as (by_name, by_number, other, none):
        await until(lambda: by_name.addresses and by_number.addresses and other.failure and none.failure)
        assert shown(by_name) == shown(by_number) == ["192.0.2.1:8443", "[2001:db8::1]:9443"]
        assert other.failure is not None
        assert other.failure.detail == "no endpoint of port 80 is ready"
        assert none.failure is not None
        assert none.failure.detail == "the Service has no TCP port smtp"


async def test_each_change_is_followed(cluster: Cluster) -> None:
    cluster.create_service()
    async with followed(cluster) as (backend,):
        await until(lambda: backend.failure)
        assert backend.failure is not None
        assert backend.failure.cause is Cause.NO_ENDPOINTS
        steps: list[tuple[list[tuple[str, dict[str, bool]]], list[str]]] = [
            ([("192.0.2.1", READY)], ["192.0.2.1:8443"]),
            ([("192.0.2.1", READY), ("192.0.2.2", NOT_READY)], ["192.0.2.1:8443"]),
            ([("192.0.2.1", READY), ("192.0.2.2", READY)], ["192.0.2.1:8443", "192.0.2.2:8443"]),
            ([("192.0.2.1", LEAVING), ("192.0.2.2", READY)], ["192.0.2.2:8443"]),
            ([("192.0.2.2", READY)], ["192.0.2.2:8443"]),
            ([("192.0.2.2", LEAVING)], ["192.0.2.2:8443"]),
            ([("192.0.2.2", LEAVING), ("192.0.2.4", NOT_READY)], ["192.0.2.2:8443"]),
            ([("192.0.2.2", GONE)], []),
        ]
        for endpoints, expected in steps:
            await in_thread(cluster.put_slice, "a", 8443, *endpoints)
            await until(lambda expected=expected: shown(backend) == expected)
        assert backend.failure is not None
        assert backend.failure.detail == "no endpoint of port https is ready; 1 terminating"
        await in_thread(cluster.put_slice, "b", 8443, ("192.0.2.3", READY))
        await until(lambda: shown(backend) == ["192.0.2.3:8443"])
        await in_thread(cluster.delete_slice, "b")
        await until(lambda: not shown(backend))


async def test_a_service_that_is_deleted_and_comes_back_is_a_backend_again(cluster: Cluster) -> None:
    cluster.put_slice("a", 8443, ("192.0.2.1", READY))
    async with followed(cluster) as (backend,):
        with capture_logs() as logs:
            for _ in range(2):
                await until(lambda: backend.failure)
                assert backend.failure is not None
                assert backend.failure.detail == "there is no such Service"
                await in_thread(cluster.create_service)
                await until(lambda: shown(backend) == ["192.0.2.1:8443"])
                await in_thread(cluster.delete_service)
            await until(lambda: backend.failure)
        assert [entry["event"] for entry in logs].count("backend unreachable") == 1


async def test_an_api_server_that_goes_away_and_comes_back_changes_nothing(tmp_path: Path) -> None:
    with running_apiserver(tmp_path) as server:
        cluster = Cluster(server)
        cluster.create_service()
        cluster.put_slice("a", 8443, ("192.0.2.1", READY))
        async with followed(cluster) as (backend,):
            await until(lambda: shown(backend) == ["192.0.2.1:8443"])
            await in_thread(server.kill)
            with trio.move_on_after(3):
                await until(lambda: not shown(backend))
            assert shown(backend) == ["192.0.2.1:8443"]
            await in_thread(server.start)
            await in_thread(cluster.put_slice, "a", 8443, ("192.0.2.2", READY))
            await until(lambda: shown(backend) == ["192.0.2.2:8443"])


async def test_before_the_api_server_has_answered_readiness_says_so(cluster: Cluster, tmp_path: Path) -> None:
    away = tmp_path / "kubeconfig"
    away.write_text(cluster.server.kubeconfig.read_text().replace(str(cluster.server.port), "1"))
    (tmp_path / "ca.crt").symlink_to(cluster.server.ca_file)
    settings = Settings(routes=cluster.settings().routes, kubeconfig=str(away))
    backend = Backend(cluster.target(), listeners=())
    async with trio.open_nursery() as nursery:
        await nursery.start(follow_services, [backend], settings)
        retrying = f"Service {cluster.namespace}/ingress: retrying"
        await until(lambda: retrying in backend.pending().detail)
        reason = (await check_routes([RouteProbe(Endpoint("::", 443), backend, b"")], (Quorum.ANY,))).reason
        nursery.cancel_scope.cancel()
    assert reason.startswith(f"backend unreachable (not-synced): {cluster.target()}: ")
    assert retrying in reason


async def test_an_undescribed_cluster_is_a_start_error(cluster: Cluster, tmp_path: Path) -> None:
    settings = Settings(routes=cluster.settings().routes, kubeconfig=str(tmp_path / "none"))
    relay = Relay(settings, open_listeners(settings))
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match="none"), flatten_subgroups=True):
        await relay.serve()


class Pod:
    """An echo server on an address that the API server accepts for a pod; it rejects loopback addresses."""

    def __init__(self, address: str) -> None:
        self.sock = trio.socket.socket()
        self.address = address
        self.accepted = 0
        self.port = 0

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.sock:
            await self.sock.bind((self.address, 0))
            self.sock.listen(100)
            self.port = self.sock.getsockname()[1]
            task_status.started()
            async with trio.open_nursery() as nursery:
                while True:
                    stream, _ = await self.sock.accept()
                    self.accepted += 1
                    nursery.start_soon(self.echo, stream)

    async def echo(self, stream: trio.socket.SocketType) -> None:
        with stream:
            await read_header(stream)
            while octets := await stream.recv(1000):
                await stream.send(octets)


@pytest.fixture
def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Sends no packet: connecting a datagram socket only selects a route.
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this computer has no address but loopback")
        return str(probe.getsockname()[0])


async def ask(endpoint: Endpoint) -> None:
    async with await trio.open_tcp_stream(endpoint.host, endpoint.port) as stream:
        await stream.send_all(b"hello")
        assert await stream.receive_some(100) == b"hello"


async def test_a_rolling_ingress_loses_no_connection(cluster: Cluster, own_address: str) -> None:
    cluster.create_service()
    settings = cluster.settings()
    relay = Relay(settings, open_listeners(settings))
    pods = [Pod(own_address) for _ in range(4)]
    lives = [trio.CancelScope() for _ in pods]
    asked = 0

    async def live(number: int, *, task_status: trio.TaskStatus[None]) -> None:
        with lives[number]:
            await pods[number].serve(task_status=task_status)

    async def ask_steadily(endpoint: Endpoint) -> None:
        nonlocal asked
        while True:
            await ask(endpoint)
            asked += 1

    async def asked_more() -> None:
        before = asked
        await until(lambda: asked > before + 50)

    async with trio.open_nursery() as nursery:
        for number in range(2):
            await nursery.start(live, number)
            cluster.put_slice(f"pod{number}", pods[number].port, (own_address, READY))
        endpoints: list[Endpoint] = await nursery.start(relay.serve)
        (backend,) = relay.backends.values()
        await until(lambda: len(backend.addresses) == 2)
        for _ in range(3):
            nursery.start_soon(ask_steadily, endpoints[0])
        await asked_more()
        long_lived = [await trio.open_tcp_stream(endpoints[0].host, endpoints[0].port) for _ in range(4)]
        for stream in long_lived:
            await stream.send_all(b"first")
            assert await stream.receive_some(100) == b"first"
        for old, new in ((0, 2), (1, 3)):
            await nursery.start(live, new)
            await in_thread(cluster.put_slice, f"pod{new}", pods[new].port, (own_address, READY))
            await until(lambda new=new: any(pods[new].port == one.sockaddr[1] for one in backend.addresses))
            await in_thread(cluster.put_slice, f"pod{old}", pods[old].port, (own_address, LEAVING))
            await until(lambda old=old: all(pods[old].port != one.sockaddr[1] for one in backend.addresses))
            accepted = pods[old].accepted
            await asked_more()
            assert pods[old].accepted <= accepted + 3, "no new connection, except those in progress"
        # A terminating pod keeps its connections until it ends.
        for stream in long_lived:
            await stream.send_all(b"still")
            assert await stream.receive_some(100) == b"still"
            await stream.aclose()
        for old in (0, 1):
            lives[old].cancel()
            await in_thread(cluster.delete_slice, f"pod{old}")
        await asked_more()
        assert min(pod.accepted for pod in pods) > 10
        assert not any(relay.core.counters.backend_errors.values())
        nursery.cancel_scope.cancel()


async def test_a_rollout_of_the_only_replica_has_a_pod_as_long_as_one_serves(
    cluster: Cluster, own_address: str
) -> None:
    cluster.create_service()
    settings = cluster.settings()
    relay = Relay(settings, open_listeners(settings))
    old, new = Pod(own_address), Pod(own_address)
    async with trio.open_nursery() as nursery:
        await nursery.start(old.serve)
        cluster.put_slice("old", old.port, (own_address, READY))
        (endpoint,) = await nursery.start(relay.serve)
        (backend,) = relay.backends.values()
        await until(lambda: len(backend.addresses) == 1)
        await ask(endpoint)
        # The Recreate strategy and StatefulSets end the old pod before there is a new one.
        await in_thread(cluster.put_slice, "old", old.port, (own_address, LEAVING))
        await nursery.start(new.serve)
        await in_thread(cluster.put_slice, "new", new.port, (own_address, NOT_READY))
        # A third slice shows that both changes have arrived: slices are watched in order.
        await in_thread(cluster.put_slice, "seen", 1, (own_address, LEAVING))
        await until(lambda: any(one.sockaddr[1] == 1 for one in backend.addresses) or not backend.addresses)
        await in_thread(cluster.delete_slice, "seen")
        await until(lambda: all(one.sockaddr[1] != 1 for one in backend.addresses))
        for _ in range(20):
            await ask(endpoint)
        assert old.accepted == 21
        await in_thread(cluster.put_slice, "new", new.port, (own_address, READY))
        await until(lambda: [one.sockaddr[1] for one in backend.addresses] == [new.port])
        await ask(endpoint)
        assert (old.accepted, new.accepted) == (21, 1)
        assert not any(relay.core.counters.backend_errors.values())
        nursery.cancel_scope.cancel()
