"""The relay as a whole: start, limits, pauses, drain and end."""

from __future__ import annotations

import errno
import functools
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any
from unittest.mock import patch

import pytest
import trio
from structlog.testing import capture_logs

from proxy.backends.backend import Backend
from proxy.header.protocol import ProxyProtocol
from proxy.relay.listener import Listener
from proxy.relay.relay import Relay, open_listeners
from proxy.routes import ANY_HOST, Route
from proxy.settings import Settings
from sidecar.sockets.accepting import CALM
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.host_port import HostPort
from tests.kit.ports import free_port, free_ports
from tests.kit.relaying import V4, V6, World, read_to_end, received_in, relaying, until


async def test_a_relay_returns_the_endpoints_of_its_listeners() -> None:
    settings = Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)), Route(Endpoint(V4, 0), HostPort(V4, 9))))
    async with trio.open_nursery() as nursery:
        endpoints: list[Endpoint] = await nursery.start(Relay(settings, open_listeners(settings)).serve)
        assert len({endpoint.port for endpoint in endpoints}) == 2
        assert all(endpoint.port for endpoint in endpoints)
        nursery.cancel_scope.cancel()


def test_a_port_in_use_is_reported_with_its_flag_and_no_socket_stays_open() -> None:
    with socket.socket() as taken:
        taken.bind((V4, 0))
        taken.listen()
        busy = Route(Endpoint(V4, taken.getsockname()[1]), HostPort(V4, 9))
        # If the first listener stayed open, the garbage collector would raise a ResourceWarning.
        with pytest.raises(StartError, match=rf"^--route {busy.listen}: the address is in use"):
            open_listeners(Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)), busy)))


async def test_a_relay_whose_backend_is_itself_does_not_start() -> None:
    listener = socket.socket()
    listener.bind((V4, 0))
    listener.listen()
    listener.setblocking(False)
    port = listener.getsockname()[1]
    settings = Settings(routes=(Route(Endpoint(V4, port), HostPort(V4, port)),))
    with pytest.raises(StartError, match="listener of this relay"):
        await Relay(settings, [listener]).serve()
    assert listener.fileno() == -1


async def test_two_routes_share_a_backend_and_its_health() -> None:
    settings = Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)), Route(Endpoint(V4, 0), HostPort(V4, 9))))
    listeners = open_listeners(settings)
    relay = Relay(settings, listeners)
    assert len(relay.backends) == 1
    for listener in listeners:
        listener.close()


async def test_draining_closes_the_listener_first_and_lets_connections_finish() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            world.stopping.set()
            await until(lambda: world.relay.listeners[0].sock.fileno() < 0)
            with pytest.raises(ConnectionRefusedError):
                await world.connect()
            await backend.send(b"the rest of the answer")
            backend.shutdown(socket.SHUT_WR)
            assert await read_to_end(client) == (b"the rest of the answer", "fin")
            client.shutdown(socket.SHUT_WR)
            await until(lambda: world.relay.core.counters.active == 0)


async def test_a_client_in_the_kernels_queue_when_draining_begins_is_served() -> None:
    async with relaying() as world:
        world.stopping.set()
        with socket.create_connection((V4, world.endpoint.port)) as client:
            client.sendall(b"just in time")
            backend, _ = await world.accept()
            with backend:
                assert await backend.recv(100) == b"just in time"


async def test_all_clients_in_the_kernels_queue_when_draining_begins_are_served() -> None:
    async with relaying() as world:
        with ExitStack() as stack:
            # As after a moment in which the relay was busy; more clients than one event accepts.
            for _ in range(200):
                client = stack.enter_context(socket.create_connection((V4, world.endpoint.port)))
                client.sendall(b"just in time")
            with patch.object(world.relay.core.poller, "dispatch", lambda _: 0):
                world.stopping.set()
                await until(lambda: world.relay.core.draining)
            assert len(world.relay.core.alive) == 200
            for _ in range(200):
                backend, _ = await world.accept()
                with backend:
                    assert await backend.recv(100) == b"just in time"


async def test_a_drained_relay_returns() -> None:
    settings = Settings(routes=(Route(Endpoint(V4, 0), HostPort(V4, 9)),))
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        relay = Relay(settings, open_listeners(settings))
        await nursery.start(functools.partial(relay.serve, stopping=stopping))
        stopping.set()
    assert all(listener.sock.fileno() < 0 for listener in relay.listeners)


async def test_what_is_left_when_the_relay_is_cancelled_is_reset() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
    with client, backend:
        assert await read_to_end(client) == (b"", "reset")
        assert await read_to_end(backend) == (b"", "reset")


async def test_at_the_limit_clients_wait_and_the_connected_go_on() -> None:
    async with relaying() as world:
        world.relay.core.limit = 2
        with capture_logs() as logs:
            pairs = [await world.pair() for _ in range(2)]
            waiting = await world.connect()
            await waiting.send(b"waited")
            for client, backend in pairs:
                await client.send(b"still here")
                assert await backend.recv(20) == b"still here"
            assert world.relay.core.counters.connections == 2
            for stream in pairs[0]:
                stream.close()
            backend, _ = await world.accept()
            assert await backend.recv(20) == b"waited"
        assert [entry["event"] for entry in logs] == ["not accepting for now"]
        for stream in (waiting, backend, *pairs[1]):
            stream.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM], ids=errno.errorcode.get)
async def test_accepting_pauses_while_the_system_has_nothing_left(number: int) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        listener = world.relay.listeners[0]
        failing = FailingSocket(listener.sock, number, times=3)
        listener.sock = failing  # type: ignore[assignment]
        with client, backend, capture_logs() as logs:
            waiting = await world.connect()
            await client.send(b"still here")
            assert await backend.recv(20) == b"still here"
            accepted, _ = await world.accept()
            with waiting, accepted:
                assert failing.times == 0
        # Logged once for three failures in a row.
        assert [entry["event"] for entry in logs] == ["not accepting for now"]
        with capture_logs() as logs:
            for later in (1.0, CALM + 1, CALM + 2):
                world.relay.core.tick(monotonic() + later)
        assert [entry["event"] for entry in logs] == ["accepting again"]
        assert 0 <= logs[0]["seconds"] < CALM


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN], ids=errno.errorcode.get)
async def test_a_client_that_fails_in_accept_costs_no_other(number: int) -> None:
    async with relaying() as world:
        listener: Listener = world.relay.listeners[0]
        listener.sock = FailingSocket(listener.sock, number, times=5)  # type: ignore[assignment]
        client, backend = await world.pair()
        with client, backend:
            await client.send(b"accepted")
            assert await backend.recv(20) == b"accepted"


class FailingSocket:
    """A listening socket whose accept fails `times` times."""

    def __init__(self, sock: socket.socket, number: int, *, times: int) -> None:
        self.sock = sock
        self.number = number
        self.times = times

    def _accept(self) -> tuple[int, tuple[str, int]]:
        if self.times:
            self.times -= 1
            raise OSError(self.number, errno.errorcode[self.number])
        return self.sock._accept()  # type: ignore[attr-defined, no-any-return]  # of the C class

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()


async def test_many_connections_leave_nothing_behind() -> None:
    async with relaying() as world:
        async with trio.open_nursery() as nursery:

            async def one() -> None:
                client = await world.connect()
                with client:
                    await client.send(b"x")
                    client.shutdown(socket.SHUT_WR)
                    assert await read_to_end(client) == (b"x", "fin")

            async def echo() -> None:
                for _ in range(200):
                    backend, _ = await world.accept()
                    nursery.start_soon(echo_one, backend)

            nursery.start_soon(echo)
            for _ in range(200):
                nursery.start_soon(one)
        await until(lambda: world.relay.core.counters.active == 0)
        assert len(world.relay.core.poller) == len(world.relay.listeners)
        assert not world.relay.core.wheel._slots
        assert world.relay.core.counters.octets_to_backend == world.relay.core.counters.octets_to_client == 200


async def echo_one(stream: trio.socket.SocketType) -> None:
    with stream:
        while octets := await stream.recv(100):
            await stream.send(octets)


def route_at(port: int, **changes: Any) -> Route:
    """A route of a Service, with a header for the clients' port 443."""
    fields: dict[str, Any] = {"stated_port": 443, "services": ("switchback/web",), "proxy_protocol": ProxyProtocol.V1}
    return Route(Endpoint(ANY_HOST, port), HostPort(V4, 9), **{**fields, **changes})


@asynccontextmanager
async def opened(world: World, **changes: Any) -> AsyncIterator[Route]:
    """One more port of a relay, with the backend of its first route."""
    route = route_at(free_port(), **changes)
    (backend,) = world.relay.backends.values()
    world.relay.open_port(route, backend)
    yield route


async def connect_to(route: Route, host: str = V4) -> trio.socket.SocketType:
    client = trio.socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    await client.connect((host, route.listen.port))
    return client


@pytest.mark.parametrize("host", [V4, V6])
async def test_an_opened_port_takes_clients_of_both_families_and_states_the_port_that_they_dialled(host: str) -> None:
    async with relaying() as world, opened(world) as route:
        with await connect_to(route, host) as client:
            backend, header = await world.accept()
            with backend:
                assert header.source == Endpoint(*client.getsockname()[:2])
                assert header.destination == Endpoint(host, 443)
        assert world.relay.listeners[-1].endpoint == route.listen


async def test_an_opened_port_is_not_advertised_by_flag() -> None:
    (port,) = free_ports(1)
    async with relaying(advertise={port: 1}, original_destination=True) as world:
        (backend,) = world.relay.backends.values()
        world.relay.open_port(route_at(port), backend)
        with await connect_to(route_at(port)):
            accepted, header = await world.accept()
            with accepted:
                assert header.destination == Endpoint(V4, 443)


async def test_a_change_of_a_port_holds_for_clients_that_come_later() -> None:
    async with relaying() as world, opened(world) as route:
        descriptor = world.relay.listeners[-1].fd
        with await connect_to(route) as early:
            first, _ = await world.accept()
            with trio.socket.socket() as elsewhere:
                await elsewhere.bind((V4, 0))
                elsewhere.listen()
                other = Backend(HostPort(V4, elsewhere.getsockname()[1]), listeners=())
                changed = replace(route, proxy_protocol=ProxyProtocol.NONE)
                world.relay.change_port(changed, other)
                assert world.relay.listeners[-1].fd == descriptor
                with await connect_to(route) as late:
                    second, _ = await elsewhere.accept()
                    with first, second:
                        for client, backend in ((early, first), (late, second)):
                            await client.send(b"hello")
                            assert await received_in(backend, 5) == b"hello"


async def test_a_closed_port_serves_the_clients_of_its_queue_and_keeps_its_connections() -> None:
    async with relaying() as world, opened(world) as route:
        with await connect_to(route) as client, ExitStack() as stack:
            backend, _ = await world.accept()
            stack.enter_context(backend)
            # More clients than one event accepts, all before the relay runs again.
            queued = [
                stack.enter_context(socket.create_connection((V4, route.listen.port), timeout=20)) for _ in range(200)
            ]
            for one in queued:
                one.sendall(b"just in time")
            world.relay.close_port(route)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((V4, route.listen.port))
            for _ in queued:
                accepted, _ = await world.accept()
                with accepted:
                    assert await received_in(accepted, 12) == b"just in time"
            await client.send(b"still here")
            assert await received_in(backend, 10) == b"still here"
        await until(lambda: world.relay.core.counters.active == 0)
        assert len(world.relay.core.poller) == len(world.relay.listeners) == 1


async def test_a_port_that_is_in_use_is_named_and_changes_nothing() -> None:
    async with relaying() as world:
        with socket.socket() as taken:
            taken.bind((V4, 0))
            taken.listen()
            route = route_at(taken.getsockname()[1])
            (backend,) = world.relay.backends.values()
            with pytest.raises(
                StartError, match=rf"^cannot listen on \[::\]:{route.listen.port}: the address is in use"
            ):
                world.relay.open_port(route, backend)
        assert len(world.relay.listeners) == 1
        world.relay.open_port(route, backend)
        with await connect_to(route):
            (await world.accept())[0].close()


async def test_ports_that_open_and_close_in_a_pause_take_no_client_before_its_end() -> None:
    async with relaying() as world, opened(world) as early:
        core = world.relay.core
        core.pause_accepting("a test")
        async with opened(world) as late:
            with await connect_to(late) as client:
                world.relay.close_port(early)
                await client.send(b"waited")
                await until(lambda: not core.paused)
                accepted, _ = await world.accept()
                with accepted:
                    assert await received_in(accepted, 6) == b"waited"


async def test_draining_closes_opened_ports_too() -> None:
    async with relaying() as world, opened(world) as route:
        with await connect_to(route) as client:
            backend, _ = await world.accept()
            with backend:
                world.stopping.set()
                await until(lambda: world.relay.listeners[-1].sock.fileno() < 0)
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((V4, route.listen.port))
                await backend.send(b"the rest")
                assert await received_in(client, 8) == b"the rest"
