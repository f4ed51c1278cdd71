"""Relays whose backend is, over some detour, a relay again: the first round is the last."""

from __future__ import annotations

import socket

import pytest
import trio
from structlog.testing import capture_logs

from proxy.backends.backend import address_of
from proxy.backends.health import Cause
from proxy.header.protocol import ProxyProtocol
from proxy.relay.listener import _ACCEPTS
from tests.kit.relaying import V4, World, read_to_end, relaying, until

PROTOCOLS = pytest.mark.parametrize("protocol", [ProxyProtocol.V1, ProxyProtocol.V2])
SPEAKS_FIRST = pytest.mark.parametrize("payload", [b"hello", b""], ids=["client speaks first", "client waits"])


def lead(world: World, to: World) -> None:
    """Have a relay's backend be another relay's listener, as if an address translation had hidden that."""
    (backend,) = world.relay.backends.values()
    backend._pool.replace([address_of(V4, to.endpoint.port)])


async def end_of(world: World, payload: bytes) -> tuple[bytes, str]:
    """How it ends for a client; what it says first is there before the relay has had a turn."""
    with socket.create_connection((V4, world.endpoint.port)) as client:
        client.sendall(payload)
        client.setblocking(False)
        return await read_to_end(trio.socket.from_stdlib_socket(client))


@PROTOCOLS
@SPEAKS_FIRST
async def test_a_relay_that_leads_to_itself_ends_the_first_round(protocol: ProxyProtocol, payload: bytes) -> None:
    async with relaying(proxy_protocol=protocol) as world:
        lead(world, world)
        with capture_logs() as logs:
            assert await end_of(world, payload) == (b"", "reset")
        assert world.relay.counters.backend_errors[Cause.OWN_LISTENER] == 1
        # A client that waits shows itself only when its header comes, and by then a turn's worth was accepted.
        assert 2 <= world.relay.counters.connections <= (3 if payload else 1 + _ACCEPTS)
        await until(lambda: world.relay.counters.active == 0)
        assert [entry["cause"] for entry in logs] == ["own-listener"]


@PROTOCOLS
@SPEAKS_FIRST
async def test_a_ring_of_relays_ends_after_a_round(protocol: ProxyProtocol, payload: bytes) -> None:
    async with relaying(proxy_protocol=protocol) as first, relaying() as second, relaying() as third:
        lead(first, second)
        lead(second, third)
        lead(third, first)
        assert await end_of(first, payload) == (b"", "reset")
        counts = [world.relay.counters for world in (first, second, third)]
        await until(lambda: not any(count.active for count in counts))
        assert sum(count.backend_errors[Cause.OWN_LISTENER] for count in counts) >= 1
        # Each of them may be a few rounds ahead of the header that it waits for.
        assert 4 <= sum(count.connections for count in counts) <= 3 * (1 + _ACCEPTS)


@PROTOCOLS
async def test_relays_in_a_row_are_no_ring(protocol: ProxyProtocol) -> None:
    async with relaying(proxy_protocol=protocol) as first, relaying(proxy_protocol=protocol) as second:
        lead(first, second)
        with socket.create_connection((V4, first.endpoint.port)) as client:
            client.sendall(b"hello")
            backend, header = await second.accept()
            with backend:
                assert header.source is not None
                assert await backend.recv(1000)


async def test_a_client_that_writes_a_header_of_itself_is_relayed() -> None:
    async with relaying() as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            host, port = client.getsockname()
            own = f"PROXY TCP4 {host} {V4} {port} {world.endpoint.port}\r\n".encode()
            client.sendall(own)
            backend, _ = await world.accept()
            with backend:
                assert await backend.recv(100) == own
