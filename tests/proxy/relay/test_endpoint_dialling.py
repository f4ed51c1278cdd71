"""Routes whose endpoints take different headers: each endpoint gets its own, and none that it must not get."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from proxy.backends.backend import address_of
from proxy.header.addresses import Header
from proxy.header.protocol import LONGEST_BEGINNING, ProxyProtocol
from proxy.header.v1 import format_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2
from proxy.relay.dialling import Dialling
from proxy.relay.endpoint_dialling import EndpointDialling
from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.side import Side
from sidecar.values.endpoints import Endpoint
from tests.kit.relaying import V4, World, pattern, read_header, read_to_end, received_in, relaying, send_all, until
from tests.proxy.relay.test_headerless import (
    DELIVERIES,
    FORGED,
    HEADERS,
    REQUEST,
    Delivery,
    connected,
    ends,
)
from tests.proxy.relay.test_loop_check import end_of, point

V1, V2, NONE, PASS = ProxyProtocol.V1, ProxyProtocol.V2, ProxyProtocol.NONE, ProxyProtocol.PASS
OTHER = "127.0.0.2"


def set_exceptions(world: World, **changes: ProxyProtocol) -> None:
    """Headers for single addresses; 127.0.0.1 is `own`, and 127.0.0.2 is `other`."""
    exceptions = tuple(({"own": V4, "other": OTHER}[name], protocol) for name, protocol in changes.items())
    (route,) = world.relay.core.settings.routes
    (backend,) = world.relay.backends.values()
    world.relay.listeners[0].set_route(replace(route, exceptions=exceptions), backend)


@asynccontextmanager
async def mixed(usual: ProxyProtocol = V1, own: ProxyProtocol = NONE) -> AsyncIterator[World]:
    """A relay whose backend takes another header than its route has."""
    async with relaying(proxy_protocol=usual) as world:
        set_exceptions(world, own=own)
        yield world


@pytest.mark.parametrize("payload", [b"hello", b""], ids=["client speaks first", "server speaks first"])
@pytest.mark.parametrize("usual", [V1, V2, NONE, PASS])
@pytest.mark.parametrize("own", [V1, V2])
async def test_an_endpoint_gets_its_own_header(usual: ProxyProtocol, own: ProxyProtocol, payload: bytes) -> None:
    async with mixed(usual, own) as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            client.sendall(payload)
            backend, _ = await world.backend.accept()
            with backend:
                octets = await backend.recv(1000, socket.MSG_PEEK)
                assert octets.startswith(SIGNATURE_V2) is (own is V2)
                header = await read_header(backend)
                assert header == Header(Endpoint(*client.getsockname()), world.endpoint)
                assert await received_in(backend, len(payload)) == payload
                await backend.send(b"220 ready")
                client.setblocking(False)
                assert await received_in(trio.socket.from_stdlib_socket(client), 9) == b"220 ready"


@pytest.mark.parametrize("usual", [V1, V2])
@pytest.mark.parametrize("own", [NONE, PASS])
@pytest.mark.parametrize("pieces", [[REQUEST], [b"P", b"OST / HTTP/1.1\r\n"], [b"PROX"], [pattern(300_000), b"x"]])
async def test_an_endpoint_without_a_header_gets_the_clients_octets_alone(
    usual: ProxyProtocol, own: ProxyProtocol, pieces: Sequence[bytes]
) -> None:
    async with mixed(usual, own) as world, connected(world) as (client, backend):
        for piece in pieces:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, client, piece)
                assert await received_in(backend, len(piece)) == piece
        await backend.send(b"heard")
        assert await received_in(client, 5) == b"heard"
        client.shutdown(socket.SHUT_WR)
        assert await read_to_end(backend) == (b"", "fin")


async def test_the_other_endpoints_get_the_header_of_the_route() -> None:
    async with relaying() as world:
        set_exceptions(world, other=NONE)
        client, backend = await world.pair()
        with client, backend:
            await client.send(b"hello")
            assert await received_in(backend, 5) == b"hello"


@pytest.mark.parametrize(
    ("usual", "exceptions"),
    [
        pytest.param(V1, {"other": NONE}, id="the exception fails"),
        pytest.param(NONE, {"own": V1}, id="the exception takes over"),
        pytest.param(V2, {"other": PASS, "own": V1}, id="two exceptions"),
    ],
)
async def test_when_an_endpoint_fails_the_next_one_gets_its_own_header(
    usual: ProxyProtocol, exceptions: dict[str, ProxyProtocol]
) -> None:
    async with relaying(proxy_protocol=usual) as world:
        set_exceptions(world, **exceptions)
        (backend,) = world.relay.backends.values()
        (good,) = backend.addresses
        # Nothing listens at the first address.
        backend.take([address_of(OTHER, good.sockaddr[1])], held=[good])
        for payload in (b"hello", b""):
            with socket.create_connection((V4, world.endpoint.port)) as client:
                client.sendall(payload)
                accepted, header = await world.accept()
                with accepted:
                    assert header.source == Endpoint(*client.getsockname())
                    assert await received_in(accepted, len(payload)) == payload


@DELIVERIES
@pytest.mark.parametrize("octets", HEADERS)
async def test_a_late_header_of_a_client_never_reaches_an_endpoint_without_headers(
    octets: bytes, deliver: Delivery
) -> None:
    async with mixed() as world, connected(world) as (client, backend):
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
        await until(lambda: world.relay.core.counters.active == 0)


@pytest.mark.parametrize("usual", [V1, NONE])
@pytest.mark.parametrize("octets", HEADERS)
async def test_a_header_that_is_there_at_first_never_reaches_an_endpoint_without_headers(
    usual: ProxyProtocol, octets: bytes
) -> None:
    async with mixed(usual) as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            client.sendall(octets[:1000])
            client.setblocking(False)
            assert (await read_to_end(trio.socket.from_stdlib_socket(client)))[1] == "reset"
        counters = world.relay.core.counters
        assert counters.headers_refused == 1
        assert counters.octets_to_backend == 0
        await until(lambda: counters.active == 0)
        assert len(world.relay.core.poller) == len(world.relay.listeners)


@pytest.mark.parametrize("position", range(1, LONGEST_BEGINNING + 2))
@pytest.mark.parametrize("octets", [format_v1(FORGED) + REQUEST, format_v2(FORGED) + REQUEST], ids=["v1", "v2"])
async def test_a_header_in_two_pieces_is_refused_wherever_it_is_split(octets: bytes, position: int) -> None:
    async with mixed() as world:
        with socket.create_connection((V4, world.endpoint.port)) as stdlib:
            stdlib.sendall(octets[:position])
            stdlib.setblocking(False)
            client = trio.socket.from_stdlib_socket(stdlib)
            if position < LONGEST_BEGINNING:
                backend, _ = await world.backend.accept()
                with backend:
                    assert await received_in(backend, position) == octets[:position]
                    await client.send(octets[position:])
                    assert await ends(client, backend) == ("reset", b"")
            else:
                assert (await read_to_end(client))[1] == "reset"
        assert world.relay.core.counters.headers_refused == 1


@pytest.mark.parametrize(
    ("usual", "own"),
    [pytest.param(NONE, PASS, id="an endpoint that may get it"), pytest.param(NONE, V1, id="behind the relay's own")],
)
async def test_a_clients_header_reaches_an_endpoint_that_takes_it(usual: ProxyProtocol, own: ProxyProtocol) -> None:
    async with mixed(usual, own) as world, connected(world) as (client, backend):
        await client.send(format_v1(FORGED) + REQUEST)
        if own is V1:
            assert (await read_header(backend)).source == Endpoint(*client.getsockname())
        assert await received_in(backend, len(format_v1(FORGED) + REQUEST)) == format_v1(FORGED) + REQUEST
        assert world.relay.core.counters.headers_refused == 0


@pytest.mark.parametrize("payload", [b"hello", b""], ids=["client speaks first", "client waits"])
async def test_a_loop_over_an_endpoint_with_a_header_ends(payload: bytes) -> None:
    async with mixed(NONE, V1) as world:
        point(world, world)
        assert await end_of(world, payload) == (b"", "reset")
        assert world.relay.core.counters.headers_refused == 1
        await until(lambda: world.relay.core.counters.active == 0)


async def test_without_exceptions_no_client_pays_for_them() -> None:
    async with relaying(connect_timeout=0.1) as world:
        (backend,) = world.relay.backends.values()
        # As before its name is resolved.
        backend._pool.replace(())
        for exceptions, kind in (({}, Dialling), ({"own": NONE}, EndpointDialling), ({}, Dialling)):
            set_exceptions(world, **exceptions)
            with await world.connect():
                await until(lambda: world.relay.core.alive)
                (waiting,) = world.relay.core.alive
                assert type(waiting) is kind
            await until(lambda: not world.relay.core.alive)


async def test_of_two_endpoints_that_are_dialled_side_by_side_the_first_to_answer_gets_its_own_header() -> None:
    async with relaying() as world:
        set_exceptions(world, other=NONE)
        (backend,) = world.relay.backends.values()
        port = backend.addresses[0].sockaddr[1]
        backend._pool.replace(())
        with await world.connect() as client:
            await until(lambda: world.relay.core.alive)
            (waiting,) = world.relay.core.alive
            assert isinstance(waiting, EndpointDialling)
            for host in (OTHER, V4):
                sock = socket.create_connection((V4, port))
                sock.setblocking(False)
                side = Side(waiting, socket.SocketType(sock.family, sock.type, 0, sock.detach()))
                assert waiting._begin_attempt(side, address_of(host, port)) == 0
            first, _ = await world.backend.accept()
            with first:
                await client.send(b"hello")
                assert await received_in(first, 5) == b"hello"


async def test_only_a_client_that_has_not_begun_to_speak_is_guarded() -> None:
    async with mixed() as world:
        for payload, guarded in ((b"", True), (b"PRO", True), (b"hello", False)):
            with socket.create_connection((V4, world.endpoint.port)) as client:
                client.sendall(payload)
                backend, _ = await world.backend.accept()
                with backend:
                    await until(lambda: any(hasattr(one, "client") for one in world.relay.core.alive))
                    (one,) = world.relay.core.alive
                    assert isinstance(one.client.sock, HeaderlessSocket) is guarded  # type: ignore[attr-defined]
            await until(lambda: not world.relay.core.alive)
