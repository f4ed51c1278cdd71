"""Routes from Services: a real API server, real nginx as pods, and the real relay, with one process and with two.

Also tests proxy/route_services/following.py and proxy/serve/claimed_ports.py.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import MappingProxyType

import pytest

from proxy.relay.limits import routes_within
from tests.docs.manifests import manifests_of
from tests.kit.accounts import create_account, role, write_kubeconfig
from tests.kit.altered import altered
from tests.kit.http_load import HttpLoad, http_load
from tests.kit.networks import root
from tests.kit.nginx import BODY, Nginx
from tests.kit.ports import free_ports
from tests.kit.processes import is_listening
from tests.kit.relays import curl
from tests.kit.route_world import (
    LEAVING,
    PODS,
    FollowingRelay,
    RouteWorld,
    Spaces,
    following_relay,
    pods,
    route_world,
)
from tests.proxy.test_cli import program

__all__ = ["root"]

pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "nginx", "curl", "ip"), pytest.mark.usefixtures("root")]

HTTPS, OTHER = 20_443, 20_022
HOLD = 10.0
"""Seconds for which some relays here hold a pod back: what has to happen before their end takes a busy machine long."""
FIRST, SECOND, THIRD = PODS
WORKERS = pytest.mark.parametrize("workers", ["1", "2"], ids=["one process", "two workers"])


@pytest.fixture(scope="module")
def world(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouteWorld]:  # noqa: ARG001  # may skip
    with route_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def spaces(world: RouteWorld) -> Spaces:
    made = world.spaces()
    made.create_backend()
    return made


def relay(
    spaces: Spaces, folder: Path, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
) -> AbstractContextManager[FollowingRelay]:
    kubeconfig = spaces.server.kubeconfig
    return following_relay(folder, *arguments, namespace=spaces.own, kubeconfig=kubeconfig, environment=environment)


def holding_relay(spaces: Spaces, folder: Path, *arguments: str) -> AbstractContextManager[FollowingRelay]:
    """The same with HOLD."""
    return relay(spaces, folder, *arguments, environment=altered(folder, {"proxy.backends.hold_back.HOLD": HOLD}))


@WORKERS
@pytest.mark.parametrize("header", ["v1", "v2"])
def test_a_service_that_is_created_is_relayed_with_the_port_that_its_clients_dial(
    spaces: Spaces, tmp_path: Path, workers: str, header: str
) -> None:
    spaces.put_pods("a", FIRST)
    # A checksum is for those routes that have version 2.
    flags = ("--workers", workers, "--crc32c")
    with pods(tmp_path, count=1) as (nginx,), relay(spaces, tmp_path, *flags) as running:
        watching = (200, ["ready, no routes", "route Services: watching"])
        running.until(lambda: running.readiness() == watching, "ready without a route")
        assert running.metrics()['proxy_routes{source="service"}'] == 0
        spaces.create_route("web", (443, HTTPS), proxy_protocol=header)
        running.until_open(HTTPS)
        for client, host in (("127.0.0.5", "127.0.0.1"), ("::1", "[::1]")):
            assert curl("--interface", client, f"http://{host}:{HTTPS}/").stdout.splitlines() == [BODY, client]
        for seen in nginx.wait_for(2):
            assert seen["proxy_protocol_server_port"] == "443"
        assert [seen["proxy_protocol_server_addr"] for seen in nginx.seen()] == ["127.0.0.1", "::1"]
        shown = f"route [::]:{HTTPS} to service:{spaces.backend}:443, {header}, from {spaces.own}/web: no failure"
        ready = (200, ["ready", "route Services: watching", shown])
        # Each process reads the pods for itself: a worker may relay while the supervisor, whose page this is, waits.
        running.until(lambda: running.readiness() == ready, "the supervisor has read the pods")
        metrics = running.metrics()
        assert metrics['proxy_routes{source="service"}'] == 1
        assert metrics['proxy_routes{source="flag"}'] == metrics["proxy_route_faults"] == 0
        assert metrics[f'proxy_route_up{{listen="[::]:{HTTPS}"}}'] == 1
        assert f"{spaces.own}/web" in running.page()
        (told,) = running.named("route opened")
        assert (told["listen"], told["proxy_protocol"], told["services"]) == (
            f"[::]:{HTTPS}",
            header,
            [f"{spaces.own}/web"],
        )
        spaces.delete_route("web")
        running.until_closed(HTTPS)
        running.until(lambda: running.readiness()[1][0] == "ready, no routes", "the route has gone")
        assert len(running.named("route closed")) == 1


@WORKERS
def test_a_rollout_with_another_setting_fails_no_request(spaces: Spaces, tmp_path: Path, workers: str) -> None:
    """As when `use-proxy-protocol` is switched off: the operator writes what the new pods take while they are held."""
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    with (
        pods(tmp_path, plain=frozenset({SECOND})) as (demanding, plain),
        relay(spaces, tmp_path, "--workers", workers) as running,
    ):
        running.until_open(HTTPS)
        running.until_followed(spaces.backend, workers=workers)
        with http_load(HTTPS, body=BODY) as load:
            load.more(20)
            spaces.put_pods("b", SECOND)
            spaces.annotate("web", endpoint_headers=f"443@{SECOND}=none")
            running.until(lambda: len(plain.seen()) > 20, "the new pod gets requests")
            count = len(demanding.seen())
            running.until(lambda: len(demanding.seen()) > count + 20, "the old pod gets requests, too")
            assert {seen["proxy_protocol_addr"] for seen in plain.seen()} == {""}
            # The last pods with the header leave, and the annotation becomes the rule.
            spaces.put_pods("a", FIRST, conditions=LEAVING)
            load.more(20)
            spaces.put_pods("a")
            running.until(lambda: f"{FIRST}:" not in running.page(), "the old pod is gone")
            load.more(20)
            running.until(lambda: rests(demanding, load), "every worker knows that the old pod is gone")
            last = len(demanding.seen())
            spaces.annotate("web", proxy_protocol="none", endpoint_headers=None)
            running.until(lambda: f"{HTTPS} to service:{spaces.backend}:443, none" in str(running.readiness()), "none")
            load.more(100)
            assert len(demanding.seen()) <= last + 3, "no further request, except those in progress"
        assert not load.failures


def rests(pod: Nginx, load: HttpLoad) -> bool:
    """Whether some more requests go to other pods."""
    before = len(pod.seen())
    load.more(20)
    return len(pod.seen()) == before


@WORKERS
def test_a_new_pod_waits_while_another_can_take_the_connections(spaces: Spaces, tmp_path: Path, workers: str) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    with (
        pods(tmp_path, count=3) as (_, second, third),
        holding_relay(spaces, tmp_path, "--workers", workers) as running,
    ):
        running.until_open(HTTPS)
        running.until_followed(spaces.backend, workers=workers)
        with http_load(HTTPS, body=BODY) as load:
            load.more(20)
            before = time.monotonic()
            spaces.put_pods("b", SECOND)
            running.until(second.seen, "the second pod gets requests")
            assert time.monotonic() - before >= HOLD
            # Without the others, a pod is used at once: the Service needs it.
            spaces.put_pods("c", THIRD)
            spaces.put_pods("a")
            before = time.monotonic()
            spaces.put_pods("b")
            running.until(third.seen, "the third pod gets requests")
            assert time.monotonic() - before < HOLD
            load.more(100)
        assert not load.failures


def test_a_pod_that_is_held_back_takes_over_from_one_that_refuses(spaces: Spaces, tmp_path: Path) -> None:
    """As in the rollout of a single replica whose old pod is terminating, but closes its port at once."""
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    (tmp_path / "first").mkdir()
    with holding_relay(spaces, tmp_path) as running, ExitStack() as old:
        old.enter_context(pods(tmp_path / "first", count=1))
        (tmp_path / "second").mkdir()
        with pods(tmp_path / "second", only=(SECOND,)) as (second,):
            running.until_open(HTTPS)
            assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)
            before = time.monotonic()
            spaces.put_pods("a", FIRST, conditions=LEAVING)
            spaces.put_pods("b", SECOND)
            running.until(lambda: f"{SECOND}:" in running.page(), "the relay knows the new pod")
            old.close()
            assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)
            assert second.seen()
            assert time.monotonic() - before < HOLD


@WORKERS
def test_changes_and_removals_fail_no_request_of_a_route_that_stays(
    spaces: Spaces, tmp_path: Path, workers: str
) -> None:
    spaces.create_backend("other")
    spaces.put_pods("a", FIRST)
    spaces.put_pods("o", SECOND, service="other")
    spaces.create_route("web", (443, HTTPS))
    spaces.create_route("beside", (443, OTHER))
    with (
        pods(tmp_path) as (first, second),
        relay(spaces, tmp_path, "--workers", workers) as running,
    ):
        running.until_open(HTTPS, OTHER)
        with http_load(HTTPS, body=BODY) as load, KeptAlive(OTHER) as kept:
            kept.ask()
            # The same port and pods with another header, another Service, and back, while requests are made.
            for annotations in (
                {"proxy_protocol": "v2"},
                {"relay_to": f"{spaces.web}/other"},
                {"relay_to": spaces.backend},
            ):
                spaces.annotate("web", **annotations)
                running.until_logged("route changed")
                load.more(50)
                if annotations.get("relay_to", "").endswith("/other"):
                    running.until(second.seen, "each worker follows the other Service at its own time")
            spaces.create_route("third", (443, 20_444))
            running.until_open(20_444)
            spaces.delete_route("beside")
            running.until_closed(OTHER)
            spaces.delete_route("third")
            running.until_closed(20_444)
            load.more(50)
            kept.ask()
        assert not load.failures
        assert first.seen()
        assert second.seen()
        assert running.metrics()["proxy_route_faults"] == 0
        assert not [value for name, value in running.metrics().items() if "backend_errors" in name and value]


class KeptAlive:
    """A connection that was opened before the changes, and is used after them."""

    def __init__(self, port: int) -> None:
        self._client = socket.create_connection(("127.0.0.1", port), timeout=20)

    def __enter__(self) -> KeptAlive:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self) -> None:
        self._client.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        received = b""
        while BODY.encode() not in received:
            octets = self._client.recv(65_536)
            assert octets, received
            received += octets


@WORKERS
def test_a_removed_route_refuses_no_client_that_it_has_accepted(spaces: Spaces, tmp_path: Path, workers: str) -> None:
    spaces.put_pods("a", FIRST)
    with pods(tmp_path, count=1) as (nginx,), relay(spaces, tmp_path, "--workers", workers) as running:
        for _ in range(3):
            spaces.create_route("web", (443, HTTPS))
            running.until_open(HTTPS)
            kept = [KeptAlive(HTTPS) for _ in range(20)]
            spaces.delete_route("web")
            running.until_closed(HTTPS)
            count = len(nginx.seen())
            for one in kept:
                with one:
                    one.ask()
            assert len(nginx.wait_for(count + 20)) == count + 20


@WORKERS
def test_a_service_with_a_fault_takes_nothing_from_the_others(spaces: Spaces, tmp_path: Path, workers: str) -> None:
    spaces.put_pods("a", FIRST)
    fixed, busy = free_ports(2)
    with (
        pods(tmp_path, count=1),
        socket.socket() as taken,
        relay(spaces, tmp_path, "--workers", workers, "--route", f"{fixed}=192.0.2.9:80") as running,
    ):
        taken.bind(("127.0.0.1", busy))
        taken.listen()
        admin = int(running.admin.rpartition(":")[2])
        spaces.create_route("bad", (443, 20_500), relay_to="shop")
        spaces.create_route("header", (443, 20_501), proxy_protocol="v3")
        spaces.create_route("name", (443, "https"))
        spaces.create_route("admin", (443, admin))
        spaces.create_route("fixed", (443, fixed))
        spaces.create_route("busy", (443, busy))
        spaces.create_route("good", (443, HTTPS))
        running.until_open(HTTPS)
        own = spaces.own
        expected = {
            f"fault of {own}/bad: switchback.dev/relay-to: 'shop' is not NAMESPACE/NAME",
            f"fault of {own}/header: switchback.dev/proxy-protocol: 'v3' is not a header; use v1, v2, none or pass",
            f"fault of {own}/name: the targetPort of port 443 is 'https'; name a number from 1 to 65535",
            f"fault of {own}/admin: the targetPort of port 443 is {admin}, which --admin has",
            f"fault of {own}/fixed: the targetPort of port 443 is {fixed}, which --route has",
            f"fault of {own}/busy: port 443: cannot listen on [::]:{busy}: the address is in use; stop the program "
            "that has it, or choose another port",
        }
        running.until(lambda: running.metrics()["proxy_route_faults"] == len(expected), "all faults")
        running.until(lambda: running.readiness()[0] == 200, "ready")
        assert {line for line in running.readiness()[1] if line.startswith("fault ")} == expected
        assert f"{own}/busy" in running.page()
        assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)
        logged = [f"fault of {one['service']}: {one['fault']}" for one in running.named("a route Service has a fault")]
        assert sorted(logged) == sorted(expected)
        assert running.metrics()['proxy_routes{source="flag"}'] == 1
        # The port is tried again.
        taken.close()
        running.until_open(busy)
        assert curl(f"http://127.0.0.1:{busy}/").stdout.startswith(BODY)
        running.until(lambda: running.metrics()["proxy_route_faults"] == len(expected) - 1, "one fault less")
        spaces.annotate("bad", relay_to=spaces.backend)
        running.until_open(20_500)


def test_where_open_files_are_few_some_routes_open_and_the_others_are_faults(spaces: Spaces, tmp_path: Path) -> None:
    spaces.put_pods("a", FIRST)
    ports = free_ports(20)
    most = routes_within(64)
    with (
        pods(tmp_path, count=1),
        following_relay(
            tmp_path, namespace=spaces.own, kubeconfig=spaces.server.kubeconfig, open_files=(64, 64)
        ) as running,
    ):
        for port in ports:
            spaces.create_route(f"web{port}", (443, port))
        running.until(lambda: running.metrics()["proxy_route_faults"] == len(ports) - most, "faults")
        assert running.metrics()['proxy_routes{source="service"}'] == most
        opened = [port for port in ports if is_listening(port)]
        assert len(opened) == most
        for port in opened:
            assert curl(f"http://127.0.0.1:{port}/").stdout.startswith(BODY)
        fault = "port 443: the limit of open files is 64, and more are needed; raise it (ulimit -n, LimitNOFILE=)"
        assert any(line.endswith(fault) for line in running.readiness()[1])
        # One that goes makes room for another.
        spaces.delete_route(f"web{opened[0]}")
        running.until_closed(opened[0])
        running.until(lambda: sum(map(is_listening, ports)) == most, "another one opens")


@WORKERS
def test_readiness_follows_the_ports_that_only_services_bring(spaces: Spaces, tmp_path: Path, workers: str) -> None:
    spaces.put_pods("a", FIRST)
    with (
        pods(tmp_path, count=1),
        relay(spaces, tmp_path, "--workers", workers, "--ready-when", str(HTTPS)) as running,
    ):
        running.until(lambda: running.readiness()[1][0] == f"no route listens on {HTTPS}", "no such port")
        assert running.readiness()[0] == 503
        spaces.create_route("web", (443, HTTPS))
        running.until(lambda: running.readiness()[0] == 200, "ready")


@WORKERS
def test_while_the_api_server_is_away_the_last_routes_stay(
    world: RouteWorld, spaces: Spaces, tmp_path: Path, workers: str
) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    with pods(tmp_path, count=1), relay(spaces, tmp_path, "--workers", workers) as running:
        running.until_open(HTTPS)
        running.until_followed(spaces.backend, workers=workers)
        with http_load(HTTPS, body=BODY) as load:
            load.more(20)
            world.server.kill()
            try:
                running.until(lambda: "retrying" in " ".join(running.readiness()[1]), "the loss is shown")
                # On a busy machine, a worker may be silent for a moment.
                running.until(lambda: running.readiness()[0] == 200, "ready by the last routes")
                load.more(100)
            finally:
                world.server.start()
            spaces.create_route("late", (443, OTHER))
            running.until_open(OTHER)
            load.more(20)
        assert not load.failures
        running.until(lambda: "route Services: watching" in running.readiness()[1], "the watch goes on")
        assert not running.named("route closed")


@WORKERS
def test_before_the_first_list_the_relay_is_not_ready_and_its_flags_routes_work(
    world: RouteWorld, spaces: Spaces, tmp_path: Path, workers: str
) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    (fixed,) = free_ports(1)
    world.server.kill()
    try:
        flags = ("--workers", workers, "--route", f"{fixed}={FIRST}:8443")
        with pods(tmp_path, count=1), relay(spaces, tmp_path, *flags) as running:
            running.until(lambda: "retrying" in running.readiness()[1][0], "the reason")
            status, (reason, *_) = running.readiness()
            assert status == 503
            assert reason.startswith("waiting for the route Services: retrying: ")
            assert curl(f"http://127.0.0.1:{fixed}/").stdout.startswith(BODY)
            assert not is_listening(HTTPS)
            world.server.start()
            running.until(lambda: running.readiness()[0] == 200, "ready")
            assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)
    finally:
        if not is_listening(world.server.port):
            world.server.start()


def test_a_port_stays_claimed_while_all_workers_are_replaced(spaces: Spaces, tmp_path: Path) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    with pods(tmp_path, count=1), relay(spaces, tmp_path, "--workers", "2") as running:
        running.until(lambda: listeners_at(HTTPS) == 2, "both workers listen")
        for worker in running.workers():
            os.kill(worker, signal.SIGKILL)
        with socket.socket() as other:
            running.until(lambda: listeners_at(HTTPS) == 0, "both workers are gone")
            with pytest.raises(OSError, match="Address already in use"):
                other.bind(("127.0.0.1", HTTPS))
        running.until(lambda: listeners_at(HTTPS) == 2, "both workers listen again")
        assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)


def test_a_worker_that_is_replaced_without_the_api_server_leaves_the_connections_to_the_others(
    world: RouteWorld, spaces: Spaces, tmp_path: Path
) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    with pods(tmp_path, count=1), relay(spaces, tmp_path, "--workers", "2") as running:
        running.until(lambda: listeners_at(HTTPS) == 2, "both workers listen")
        running.until_followed(spaces.backend, workers="2")
        world.server.kill()
        try:
            os.kill(running.workers()[0], signal.SIGKILL)
            running.until(lambda: running.metrics()["proxy_worker_restarts_total"] == 1, "restarted")
            running.until(lambda: running.metrics()["proxy_workers"] == 2, "reports")
            with http_load(HTTPS, body=BODY) as load:
                load.more(100)
            assert not load.failures
            assert listeners_at(HTTPS) == 1
            # On a busy machine, a worker may be silent for a moment.
            running.until(lambda: running.readiness()[0] == 200, "ready with one worker that knows the routes")
        finally:
            world.server.start()
        running.until(lambda: listeners_at(HTTPS) == 2, "the new worker listens")


def listeners_at(port: int) -> int:
    """How many sockets listen at a port on all addresses (proc(5), /proc/net/tcp6)."""
    rows = Path("/proc/thread-self/net/tcp6").read_text().splitlines()[1:]
    return sum(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


@WORKERS
def test_the_rights_in_the_guide_are_enough_and_a_missing_one_is_named(
    spaces: Spaces, tmp_path: Path, workers: str
) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    server = spaces.server
    stated = {one["metadata"]["name"]: one["rules"] for one in manifests_of("proxy") if one["kind"] == "Role"}
    roles = (role(spaces.own, stated["relay-routes"]), role(spaces.web, stated["relay-backends"]))
    rows = {"enough": roles, "no backend": roles[:1], "none": ()}
    configs = {
        name.replace(" ", "-"): write_kubeconfig(
            server, create_account(server, spaces.own, name.replace(" ", "-"), some), tmp_path / f"{name}.yaml"
        )
        for name, some in rows.items()
    }

    def started(name: str) -> AbstractContextManager[FollowingRelay]:
        (tmp_path / name).mkdir()
        return following_relay(tmp_path / name, "--workers", workers, namespace=spaces.own, kubeconfig=configs[name])

    with pods(tmp_path, count=1):
        with started("enough") as running:
            running.until(lambda: running.readiness()[0] == 200, "ready")
            running.until_open(HTTPS)
            assert curl(f"http://127.0.0.1:{HTTPS}/").stdout.startswith(BODY)
            assert "forbidden" not in running.log.read_text()
        with started("no-backend") as running:
            running.until(lambda: "endpointslices" in running.readiness()[1][0], "the backend's rights")
            status, (reason, *_) = running.readiness()
            assert status == 503
            assert reason.startswith(f"backend unreachable (not-synced): service:{spaces.backend}:443: ")
            assert "403" in reason
        with started("none") as running:
            running.until(lambda: "403" in running.readiness()[1][0], "the own rights")
            assert running.readiness()[0] == 503
            assert running.readiness()[1][0].startswith("waiting for the route Services: retrying: 403: ")
            retrying = running.named("retrying")
            assert retrying[0]["cause"] == "forbidden"
            assert "services is forbidden" in retrying[0]["error"]


def test_a_backend_that_is_the_relay_itself_is_never_dialled(spaces: Spaces, tmp_path: Path) -> None:
    """The namespace of the backend is not ours, so only its endpoints show it."""
    with relay(spaces, tmp_path) as running:
        spaces.create_backend("loop")
        own = f"/apis/discovery.k8s.io/v1/namespaces/{spaces.web}/endpointslices"
        spaces.server.request(
            "POST",
            own,
            {
                "metadata": {"name": "loop", "labels": {"kubernetes.io/service-name": "loop"}},
                "addressType": "IPv4",
                "ports": [{"name": "https", "port": HTTPS, "protocol": "TCP"}],
                "endpoints": [{"addresses": [FIRST]}],
            },
        )
        spaces.create_route("loop", (443, HTTPS), relay_to=f"{spaces.web}/loop")
        running.until_open(HTTPS)
        running.until(lambda: "own-listener" in running.readiness()[1][0], "the loop is seen")
        assert curl(f"http://127.0.0.1:{HTTPS}/").returncode != 0
        assert running.metrics()["proxy_connections_total"] < 10
        # When the port goes to another Service, the address may be dialled again: nothing listens there now.
        spaces.create_route("other", (443, OTHER), relay_to=f"{spaces.web}/loop")
        running.until_open(OTHER)
        spaces.delete_route("loop")
        running.until_closed(HTTPS)
        running.until(lambda: "own-listener" not in " ".join(running.readiness()[1]), "no loop any more")


def test_the_namespace_is_that_of_the_kubeconfigs_context_if_no_flag_names_one(spaces: Spaces, tmp_path: Path) -> None:
    spaces.put_pods("a", FIRST)
    spaces.create_route("web", (443, HTTPS))
    kubeconfig = write_kubeconfig(spaces.server, spaces.server.token, tmp_path / "kubeconfig")
    text = kubeconfig.read_text()
    kubeconfig.write_text(text.replace("cluster: test\n", f"cluster: test\n    namespace: {spaces.own}\n"))
    with following_relay(tmp_path, namespace=None, kubeconfig=kubeconfig) as running:
        running.until_open(HTTPS)


@WORKERS
def test_without_a_cluster_the_relay_does_not_start_and_says_which_flag_needs_one(tmp_path: Path, workers: str) -> None:
    log = tmp_path / "log"
    missing = tmp_path / "none"
    flags = ("--routes-from", "services", "--kubeconfig", str(missing), "--admin", "off", "--workers", workers)
    with program(log, *flags) as process:
        assert process.wait(30) == 2
    (told,) = [line for line in log.read_text().splitlines() if line.startswith("Error: ")]
    assert told.startswith(f"Error: --routes-from services: {missing} does not exist; ")
    assert "Traceback" not in log.read_text()
