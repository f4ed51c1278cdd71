"""The relay as a whole: start, limits, pauses, drain and end."""

from __future__ import annotations

import errno
import functools
import socket
from contextlib import ExitStack
from time import monotonic
from unittest.mock import patch

import pytest
import trio
from structlog.testing import capture_logs

from proxy.relay.listener import Listener
from proxy.relay.relay import Relay, open_listeners
from proxy.routes import Route
from proxy.settings import Settings
from sidecar.sockets.accepting import CALM
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.host_port import HostPort
from tests.kit.relaying import V4, read_to_end, relaying, until


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
