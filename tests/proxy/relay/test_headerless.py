"""A route without headers: a client's own header never reaches the backend, and everything else does, at once."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing

import pytest
import trio
from structlog.testing import capture_logs

from proxy.backends.health import Cause
from proxy.header.addresses import LOCAL, Header
from proxy.header.protocol import LONGEST_BEGINNING, ProxyProtocol
from proxy.header.v1 import format_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2
from proxy.relay.headerless import HeaderlessSocket
from sidecar.values.endpoints import Endpoint
from tests.kit.relaying import (
    V4,
    Socket,
    World,
    acknowledged,
    pattern,
    read_header,
    read_to_end,
    received_in,
    relaying,
    reset,
    send_all,
    sides_of,
    until,
)

FORGED = Header(Endpoint("198.51.100.7", 7), Endpoint("192.0.2.80", 443))
REQUEST = b"GET /admin HTTP/1.1\r\nHost: example.org\r\n\r\n"

HEADERS = [
    pytest.param(format_v1(FORGED) + REQUEST, id="version 1 and a request"),
    pytest.param(format_v2(FORGED) + REQUEST, id="version 2 and a request"),
    pytest.param(format_v2(FORGED, checksum=True), id="version 2 with a checksum"),
    pytest.param(format_v1(LOCAL) + REQUEST, id="version 1 without addresses"),
    pytest.param(format_v2(LOCAL) + REQUEST, id="version 2 without addresses"),
    pytest.param(format_v1(FORGED)[:-2], id="version 1 without its end"),
    pytest.param(SIGNATURE_V2, id="version 2 without its end"),
    pytest.param(b"PROXYZ TCP4 198.51.100.7 192.0.2.80 7 443\r\n" + REQUEST, id="version 1 for a lax receiver"),
    pytest.param(format_v1(FORGED) * 20, id="twenty headers"),
    pytest.param(format_v1(FORGED) + bytes(200_000), id="a header and more than a buffer"),
]


async def at_once(client: Socket, octets: bytes) -> None:
    await send_all(client, octets)


async def octet_by_octet(client: Socket, octets: bytes) -> None:
    for position in range(min(20, len(octets))):
        await client.send(octets[position : position + 1])
        await until(lambda: acknowledged(client))
    await send_all(client, octets[20:])


async def with_an_urgent_octet(client: Socket, octets: bytes) -> None:
    await client.send(octets[:3])
    client._sock.send(octets[3:4], socket.MSG_OOB)  # type: ignore[attr-defined]
    await send_all(client, octets[4:])


Delivery = Callable[[Socket, bytes], Awaitable[None]]
DELIVERIES = pytest.mark.parametrize(
    "deliver", [at_once, octet_by_octet, with_an_urgent_octet], ids=["at once", "octet by octet", "urgent"]
)


@asynccontextmanager
async def connected(world: World) -> AsyncIterator[tuple[Socket, Socket]]:
    """A silent client and the backend's end of its connection."""
    client = await world.connect()
    backend, _ = await world.backend.accept()
    with client, backend:
        yield client, backend


async def ends(client: Socket, backend: Socket) -> tuple[str, bytes]:
    """How the client's connection ended, and what its backend had received."""
    _, how = await read_to_end(client)
    received, _ = await read_to_end(backend)
    return how, received


@DELIVERIES
@pytest.mark.parametrize("octets", HEADERS)
async def test_a_late_header_ends_the_connection_and_no_header_reaches_the_backend(
    octets: bytes, deliver: Delivery
) -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world, connected(world) as (client, backend):
        with capture_logs() as logs:
            try:
                await deliver(client, octets)
            except (ConnectionResetError, BrokenPipeError):
                how = "reset"
                received, _ = await read_to_end(backend)
            else:
                how, received = await ends(client, backend)
        assert how == "reset"
        assert len(received) < LONGEST_BEGINNING
        assert octets.startswith(received)
        assert world.relay.core.counters.headers_refused == 1
        assert [(one["event"], one["client"]) for one in logs] == [
            ("client refused, it sent a PROXY header of its own", V4)
        ]
        await until(lambda: world.relay.core.counters.active == 0)


@pytest.mark.parametrize("octets", HEADERS)
async def test_a_header_that_is_there_at_first_costs_the_backend_no_connection(octets: bytes) -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            client.sendall(octets[:1000])
            client.setblocking(False)
            assert (await read_to_end(trio.socket.from_stdlib_socket(client)))[1] == "reset"
        assert world.relay.core.counters.headers_refused == 1
        assert world.relay.core.counters.octets_to_backend == 0
        assert world.relay.core.counters.backend_errors == dict.fromkeys(Cause, 0)
        with trio.move_on_after(0):
            await world.backend.accept()
            pytest.fail("the backend has a connection")


@pytest.mark.parametrize("position", range(1, LONGEST_BEGINNING + 2))
@pytest.mark.parametrize("octets", [format_v1(FORGED) + REQUEST, format_v2(FORGED) + REQUEST], ids=["v1", "v2"])
async def test_a_header_in_two_pieces_is_refused_wherever_it_is_split(octets: bytes, position: int) -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world:
        with socket.create_connection((V4, world.endpoint.port)) as stdlib:
            stdlib.sendall(octets[:position])
            stdlib.setblocking(False)
            client = trio.socket.from_stdlib_socket(stdlib)
            if position < LONGEST_BEGINNING:
                backend, _ = await world.backend.accept()
                with backend:
                    # The first piece may be all that this client has to say: it does not wait for more.
                    assert await received_in(backend, position) == octets[:position]
                    await client.send(octets[position:])
                    assert await ends(client, backend) == ("reset", b"")
            else:
                assert (await read_to_end(client))[1] == "reset"
        assert world.relay.core.counters.headers_refused == 1


async def test_a_header_after_much_from_the_backend_is_refused() -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world, connected(world) as (client, backend):
        greeting = pattern(3_000_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all, backend, greeting)
            assert await received_in(client, len(greeting)) == greeting
        assert sides_of(world).backend.bulk
        await client.send(format_v1(FORGED) + REQUEST)
        assert await ends(client, backend) == ("reset", b"")


async def test_a_client_that_is_gone_when_its_header_is_read_has_sent_none() -> None:
    # A failed send to the client reads what the client sent before its RST.
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world, connected(world) as (client, backend):
        await client.send(format_v1(FORGED) + REQUEST)
        reset(client)
        # The relay may have seen the RST by then, and closed this side too.
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            await backend.send(b"220 ready\r\n")
        received, _ = await read_to_end(backend)
        assert received == b""


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"GET / HTTP/1.1\r\n"], id="GET"),
        pytest.param([b"P", b"OST / HTTP/1.1\r\n"], id="POST, split"),
        pytest.param([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], id="HTTP/2"),
        pytest.param([b"\x16\x03\x01\x02\x00"], id="TLS"),
        pytest.param([b"\r\n"], id="a blank line, as a finger client sends"),
        pytest.param([b"\r\n\r\n", b"OPTIONS sip:example.org SIP/2.0\r\n"], id="a keep-alive of SIP"),
        pytest.param([b"PROX"], id="almost a header"),
        pytest.param([b"PROX", b"IMA"], id="a word"),
        pytest.param([b"proxy tcp4 198.51.100.7"], id="small letters"),
        pytest.param([b" ", b"PROXY TCP4 198.51.100.7"], id="a blank in front"),
        pytest.param([REQUEST, format_v1(FORGED)], id="a header behind a request"),
        pytest.param([pattern(300_000), format_v2(FORGED)], id="a header behind much"),
    ],
)
async def test_everything_else_flows_at_once_both_ways(pieces: Sequence[bytes]) -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world, connected(world) as (client, backend):
        for piece in pieces:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, client, piece)
                # Each piece arrives before the client has sent another.
                assert await received_in(backend, len(piece)) == piece
            await backend.send(b"heard")
            assert await received_in(client, 5) == b"heard"
        client.shutdown(socket.SHUT_WR)
        assert await read_to_end(backend) == (b"", "fin")
        await backend.send(b"the last word")
        assert await received_in(client, 13) == b"the last word"
        assert world.relay.core.counters.octets_to_backend == sum(map(len, pieces))
        assert world.relay.core.counters.headers_refused == 0


@pytest.mark.parametrize("octets", [format_v1(FORGED) + REQUEST, format_v2(FORGED) + REQUEST], ids=["v1", "v2"])
async def test_a_route_that_passes_headers_on_passes_them_on(octets: bytes) -> None:
    async with relaying(proxy_protocol=ProxyProtocol.PASS) as world, connected(world) as (client, backend):
        await octet_by_octet(client, octets)
        assert await received_in(backend, len(octets)) == octets


async def test_behind_the_relays_own_header_a_clients_header_is_payload() -> None:
    async with relaying() as world:
        client = await world.connect()
        await client.send(format_v1(FORGED))
        backend, _ = await world.backend.accept()
        with client, backend:
            assert (await read_header(backend)).source == Endpoint(*client.getsockname())
            assert await received_in(backend, len(format_v1(FORGED))) == format_v1(FORGED)


async def test_refusals_are_logged_once_in_a_while_and_counted_each() -> None:
    async with relaying(proxy_protocol=ProxyProtocol.NONE) as world:
        with capture_logs() as logs:
            for _ in range(20):
                with socket.create_connection((V4, world.endpoint.port)) as client:
                    client.sendall(format_v1(FORGED))
                    client.setblocking(False)
                    await read_to_end(trio.socket.from_stdlib_socket(client))
        assert world.relay.core.counters.headers_refused == 20
        assert len(logs) == 1


def test_after_a_header_nothing_more_is_read() -> None:
    ours, theirs = socket.socketpair()
    seen: list[bool] = []
    guarded = HeaderlessSocket(socket.AF_UNIX, ours.detach(), on_header=lambda: seen.append(True))
    with theirs, closing(guarded):
        theirs.sendall(format_v1(FORGED) + REQUEST)
        buffer = bytearray(16)
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                guarded.recv_into(buffer)
    assert seen == [True]
