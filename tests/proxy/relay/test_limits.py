"""Limits for one client, for all clients and by the descriptors of the process."""

from __future__ import annotations

import resource
import socket
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from proxy.header.protocol import ProxyProtocol
from proxy.relay.core import Core
from proxy.relay.limits import (
    LOG_SECONDS,
    MOST_PIPES,
    Clients,
    LogPace,
    connections_within,
    descriptors_of_routes,
    pipes_within,
    routes_within,
    share_of_one_client,
)
from proxy.relay.relay import Relay, open_listeners
from proxy.routes import Route
from proxy.settings import Settings
from sidecar.sockets.descriptors import LEAST_FREE, admin_share
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.relaying import V4, read_to_end, relaying, until


def limit_of(max_connections: int | None) -> int:
    settings = Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)),), max_connections=max_connections)
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in open_listeners(settings)]
        relay = Relay(settings, listeners)
        with relay.core.poller:
            return relay.core.limit


def test_the_limit_is_what_descriptors_allow_or_less() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    derived = limit_of(None)
    assert soft // 4 < derived < soft // 2
    assert limit_of(10) == 10
    with capture_logs() as logs:
        assert limit_of(soft) == derived
    assert [(entry["asked"], entry["possible"]) for entry in logs] == [(soft, derived)]


@pytest.mark.parametrize("descriptors", [1, 16, 64, 1024, 20_000, 1_048_576])
def test_connections_and_pipes_together_stay_within_the_descriptors(descriptors: int) -> None:
    assert 0 <= pipes_within(descriptors) <= MOST_PIPES
    together = 2 * connections_within(descriptors) + 2 * pipes_within(descriptors)
    assert together <= max(2, descriptors)


def test_a_relay_sets_descriptors_aside_for_its_pipes() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert connections_within(soft) <= (soft - 2 * pipes_within(soft)) // 2


def test_many_listeners_leave_descriptors_for_the_admin_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.core.descriptor_limit", lambda: 256)
    routes = tuple(Route(Endpoint(V4, 0), HostPort(V4, 9)) for _ in range(100))
    core = Core(Settings(routes=routes))
    with core.poller:
        clients = 2 * core.limit + 2 * pipes_within(256 - len(routes))
    assert clients + len(routes) + admin_share(256) + LEAST_FREE <= 256


@pytest.mark.parametrize("descriptors", [1, 16, 64, 256, 1024, 20_000, 1_048_576])
def test_routes_from_services_and_all_that_they_need_take_a_quarter_at_most(descriptors: int) -> None:
    routes = routes_within(descriptors)
    most = descriptors_of_routes(listeners=routes, services=routes)
    assert most <= descriptors // 4
    assert descriptors_of_routes(listeners=routes + 1, services=routes + 1) > descriptors // 4
    pipes = pipes_within(descriptors)
    together = most + 2 * pipes + 2 * connections_within(descriptors - most, pipes=pipes)
    assert together <= max(2, descriptors)


@pytest.mark.parametrize("count", [0, 1, 10, routes_within(256)])
def test_ports_that_open_leave_descriptors_for_the_admin_port(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("proxy.relay.core.descriptor_limit", lambda: 256)
    core = Core(Settings(routes=()))
    with core.poller:
        before = core.limit, core.clients.most_each
        taken = descriptors_of_routes(listeners=count, services=count)
        core.set_aside(taken)
        assert 2 * core.limit + 2 * pipes_within(256) + taken + admin_share(256) + LEAST_FREE <= 256
        assert core.clients.most_each == max(1, core.limit // 4)
        assert (core.limit < before[0]) is (count > 0)
        core.set_aside(0)
        assert (core.limit, core.clients.most_each) == before


@pytest.mark.parametrize(
    ("stated", "expected"),
    [pytest.param((8, None), (8, 2), id="a limit"), pytest.param((None, 5), (None, 5), id="a limit for one client")],
)
def test_limits_of_flags_hold_however_many_ports_open(
    stated: tuple[int | None, int | None], expected: tuple[int | None, int]
) -> None:
    core = Core(Settings(routes=(), max_connections=stated[0], max_connections_per_client=stated[1]))
    with core.poller:
        with capture_logs() as logs:
            core.set_aside(300)
        assert core.limit == (expected[0] or core.limit)
        assert core.clients.most_each == expected[1]
        assert logs == []


def test_a_client_has_no_more_than_it_may() -> None:
    clients = Clients(most_each=2)
    assert [clients.enter("192.0.2.1", port) for port in (1, 2, 3)] == [True, True, False]
    assert clients.enter("192.0.2.2", 3)
    clients.leave("192.0.2.1", 1)
    assert clients.enter("192.0.2.1", 3)


def test_a_port_that_two_routes_have_in_common_counts_twice() -> None:
    clients = Clients(most_each=2)
    assert [clients.enter("192.0.2.1", 1) for _ in range(3)] == [True, True, False]
    clients.leave("192.0.2.1", 1)
    assert clients.has("192.0.2.1", 1)
    clients.leave("192.0.2.1", 1)
    assert not clients.has("192.0.2.1", 1)


def test_a_mapped_address_is_the_same_client() -> None:
    clients = Clients(most_each=1)
    assert clients.enter("192.0.2.1", 1)
    assert not clients.enter("::ffff:192.0.2.1", 2)
    assert clients.has("::ffff:192.0.2.1", 1)


def test_a_client_without_a_limit_counts_for_those_with_one() -> None:
    clients = Clients(most_each=1)
    assert all(clients.enter("192.0.2.1", port, limited=False) for port in range(9))
    assert not clients.enter("192.0.2.1", 9)


@pytest.mark.parametrize(
    ("protocol", "stated", "active"),
    [
        pytest.param(ProxyProtocol.PASS, None, 6, id="a load balancer has one address"),
        pytest.param(ProxyProtocol.PASS, 2, 2, id="unless a flag says how many"),
        pytest.param(ProxyProtocol.NONE, None, 2, id="clients have their own"),
    ],
)
async def test_the_share_holds_where_clients_have_their_own_addresses(
    protocol: ProxyProtocol, stated: int | None, active: int
) -> None:
    async with relaying(proxy_protocol=protocol, max_connections=8, max_connections_per_client=stated) as world:
        with ExitStack() as held:
            for _ in range(6):
                held.enter_context(socket.create_connection((V4, world.endpoint.port)))
            counters = world.relay.core.counters
            await until(lambda: counters.active + counters.refused == 6)
            assert counters.active == active


def test_refusals_are_not_logged_each_time() -> None:
    pace = LogPace()
    times = [0, 1, LOG_SECONDS - 1, LOG_SECONDS, LOG_SECONDS + 1]
    assert [pace.is_due(now=now) for now in times] == [True, False, False, True, False]


@pytest.mark.parametrize(("whole", "share"), [(1, 1), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (1_000, 250)])
def test_one_client_has_a_quarter_of_all_and_at_least_one(whole: int, share: int) -> None:
    assert share_of_one_client(whole) == share


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param((40, None), 10, id="a quarter of what is stated"),
        pytest.param((40, 3), 3, id="less by flag"),
        pytest.param((40, 40), 40, id="everything by flag"),
        pytest.param((1, None), 1, id="the only connection"),
    ],
)
def test_the_share_of_one_client_follows_the_limit(stated: tuple[int, int | None], expected: int) -> None:
    core = Core(Settings(routes=(), max_connections=stated[0], max_connections_per_client=stated[1]))
    with core.poller:
        assert core.clients.most_each == expected


async def test_one_client_cannot_take_the_relay_from_others() -> None:
    async with relaying(max_connections=8) as world:
        held = [await world.connect() for _ in range(2)]
        for _ in range(28):
            # The refusal may come before connect() returns.
            with suppress(OSError), socket.create_connection((V4, world.endpoint.port)):
                pass
        await until(lambda: world.relay.core.counters.refused == 28)
        with trio.socket.socket() as other:
            await other.bind(("127.0.0.2", 0))
            await other.connect((V4, world.endpoint.port))
            for _ in range(2):
                (await world.accept())[0].close()
            backend, header = await world.accept()
            with backend:
                assert header.source is not None
                assert header.source.host == "127.0.0.2"
        for stream in held:
            stream.close()


@given(st.lists(st.tuples(st.sampled_from(["192.0.2.1", "192.0.2.2"]), st.integers(1, 2), st.booleans())))
def test_when_all_clients_have_left_nothing_is_kept(moves: list[tuple[str, int, bool]]) -> None:
    clients, inside = Clients(most_each=2), Counter[tuple[str, int]]()
    for host, port, leaves in moves:
        if leaves and inside[host, port]:
            clients.leave(host, port)
            inside[host, port] -= 1
        elif clients.enter(host, port):
            inside[host, port] += 1
        assert all(clients.has(*one) is (count > 0) for one, count in inside.items())
        assert all(sum(count for one, count in inside.items() if one[0] == host) <= 2 for host, _ in inside)
    for host, port in inside.elements():
        clients.leave(host, port)
    assert not clients._ports
    assert not clients._connections


async def test_one_client_address_has_no_more_than_its_share_and_others_notice_nothing() -> None:
    async with relaying(max_connections_per_client=2) as world:
        greedy = [await world.pair() for _ in range(2)]
        with capture_logs() as logs:
            for _ in range(20):
                with socket.create_connection((V4, world.endpoint.port)) as refused:
                    stream = trio.socket.from_stdlib_socket(refused)
                    refused.setblocking(False)
                    assert await read_to_end(stream) == (b"", "reset")
        assert [(entry["event"], entry["client"]) for entry in logs] == [
            ("client refused, it has too many connections", V4)
        ]
        assert world.relay.core.counters.refused == 20
        with trio.socket.socket() as other:
            await other.bind(("127.0.0.2", 0))
            await other.connect((V4, world.endpoint.port))
            backend, header = await world.accept()
            with backend:
                assert header.source is not None
                assert header.source.host == "127.0.0.2"
        for stream in greedy.pop():
            stream.close()
        await until(lambda: world.relay.core.counters.active == 1)
        again = await world.pair()
        for stream in (*again, *greedy.pop()):
            stream.close()


async def test_a_refused_client_costs_no_backend_connection_and_counts_as_none() -> None:
    async with relaying(max_connections_per_client=1) as world:
        client, backend = await world.pair()
        with client, backend:
            for _ in range(5):
                with socket.create_connection((V4, world.endpoint.port)) as refused:
                    refused.setblocking(False)
                    await read_to_end(trio.socket.from_stdlib_socket(refused))
            assert world.relay.core.counters.connections == 1
            await client.send(b"still here")
            assert await backend.recv(100) == b"still here"


async def test_ten_thousand_that_connect_and_close_leave_nothing_behind() -> None:
    with capture_logs() as logs:
        async with relaying() as world:
            counters = world.relay.core.counters
            for _ in range(200):
                for _ in range(50):
                    with socket.create_connection((V4, world.endpoint.port)):
                        pass
                await trio.lowlevel.checkpoint()
            await until(lambda: counters.connections == 10_000 and counters.active == 0)
            assert len(world.relay.core.poller) == len(world.relay.listeners)
            assert not world.relay.core.wheel._slots
            assert not world.relay.core.clients._ports
            client, backend = await world.pair()
            with client, backend:
                await client.send(b"still here")
                assert await backend.recv(100) == b"still here"
            await until(lambda: counters.active == 0)
    assert not logs


def test_the_queue_of_a_listener_is_as_long_as_the_kernel_allows() -> None:
    settings = Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)),))
    (listener,) = open_listeners(settings)
    with listener:
        # Send-Q of a listening socket (ss(8)): tcpi_sacked of struct tcp_info holds the backlog then.
        info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    backlog = int.from_bytes(info[28:32], "little")
    assert backlog == min(4096, int(Path("/proc/sys/net/core/somaxconn").read_text()))
