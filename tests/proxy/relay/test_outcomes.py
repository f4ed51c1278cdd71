"""How each kind of end is described, by a relay on real sockets."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from proxy.header.protocol import ProxyProtocol
from proxy.tap.ended import Ended, Ending
from sidecar.values.host_port import HostPort
from tests.kit.ports import free_ports
from tests.kit.relaying import V4, World, relaying, relaying_to, reset, send_all, until

Act = Callable[[World], Awaitable[None]]


async def ended_one(world: World, act: Act) -> Ended:
    """What the relay notes of one connection."""
    subscription = world.relay.core.tap.subscribe()
    await act(world)
    events, dropped = await subscription.receive()
    subscription.close()
    assert (len(events), dropped) == (1, 0)
    return events[0]


async def exchange(world: World) -> None:
    client, backend = await world.pair()
    with client, backend:
        await client.send(b"hello")
        assert await backend.recv(10) == b"hello"
        await backend.send(b"good day")
        assert await client.recv(10) == b"good day"


async def transfer(world: World) -> None:
    client, backend = await world.pair()
    with client, backend:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all, backend, bytes(5_000_000))
            left = 5_000_000
            while left:
                left -= len(await client.recv(65_536))


async def reset_client(world: World) -> None:
    client, backend = await world.pair()
    with backend:
        await client.send(b"hello")
        assert await backend.recv(10) == b"hello"
        reset(client)
        with pytest.raises(ConnectionResetError):
            await backend.recv(10)


async def reset_backend(world: World) -> None:
    client, backend = await world.pair()
    with client:
        reset(backend)
        with pytest.raises(ConnectionResetError):
            await client.recv(10)


async def stay(world: World) -> None:
    client, backend = await world.pair()
    with client, backend:
        assert await client.recv(10) == b""


async def half_close(world: World) -> None:
    client, backend = await world.pair()
    with client, backend:
        client.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            await client.recv(10)


async def probe(world: World) -> None:
    # Without a pause between connection and end: the relay finds both.
    socket.create_connection((world.endpoint.host, world.endpoint.port)).close()
    await trio.lowlevel.checkpoint()


async def send_header(world: World) -> None:
    with await world.connect() as client:
        await client.send(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
        with pytest.raises(ConnectionResetError):
            await client.recv(10)


@pytest.mark.parametrize(
    ("act", "settings", "ending", "octets"),
    [
        pytest.param(exchange, {}, Ending.CLOSED, (5, 8), id="both finished"),
        pytest.param(transfer, {}, Ending.CLOSED, (0, 5_000_000), id="through a pipe"),
        pytest.param(reset_client, {}, Ending.CLIENT_RESET, (5, 0), id="client reset"),
        pytest.param(reset_backend, {}, Ending.BACKEND_RESET, (0, 0), id="backend reset"),
        pytest.param(stay, {"idle_timeout": 0.3}, Ending.IDLE, (0, 0), id="idle"),
        pytest.param(half_close, {"half_close_timeout": 0.3}, Ending.HALF_CLOSED, (0, 0), id="half closed"),
        pytest.param(probe, {}, Ending.CLIENT_LEFT, (0, 0), id="a probe"),
        pytest.param(send_header, {"proxy_protocol": ProxyProtocol.NONE}, Ending.HEADER, (0, 0), id="own header"),
    ],
)
async def test_a_connection_knows_how_it_ended_and_what_it_moved(
    act: Act, settings: dict[str, Any], ending: Ending, octets: tuple[int, int]
) -> None:
    async with relaying(**settings) as world:
        event = await ended_one(world, act)
        assert (event.end, event.cause) == (ending, "")
        assert (event.bytes_in, event.bytes_out) == octets
        assert event.route == str(world.endpoint)
        assert event.client == V4
        assert 0 <= event.seconds < 60
        backend = f"{V4}:{world.backend.getsockname()[1]}"
        # The header may come before or after the backend has been connected.
        possible: dict[Ending, set[str | None]] = {Ending.CLIENT_LEFT: {None}, Ending.HEADER: {None, backend}}
        assert event.backend in possible.get(ending, {backend})


async def test_a_client_without_a_backend_names_the_cause() -> None:
    (port,) = free_ports(1)
    async with relaying_to(HostPort(V4, port)) as world:
        event = await ended_one(world, stay_alone)
        assert (event.end, event.cause, event.backend) == (Ending.NO_BACKEND, "connection-refused", None)


async def stay_alone(world: World) -> None:
    # The reset may come before connect has returned.
    with pytest.raises(ConnectionResetError), await world.connect() as client:
        await client.recv(10)


async def test_one_client_too_many_is_an_end_too() -> None:
    async with relaying(max_connections_per_client=1) as world:
        client, backend = await world.pair()
        with client, backend:
            event = await ended_one(world, stay_alone)
            assert (event.end, event.client) == (Ending.LIMIT, V4)


async def test_what_the_end_of_the_relay_resets_was_stopped() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        subscription = world.relay.core.tap.subscribe()
    with client, backend:
        ((event,), _) = subscription.take()
        assert event.end is Ending.STOPPED
        assert event.backend is not None


async def test_without_a_listener_nothing_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.core.describe", None)
    async with relaying() as world:
        await exchange(world)
        await until(lambda: world.relay.core.counters.active == 0)
