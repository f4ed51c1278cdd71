"""Relay loops, direct and over other relays: the first round is the last."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from proxy.backends.backend import Backend, address_of
from proxy.header.addresses import Header
from proxy.header.protocol import ProxyProtocol
from proxy.header.v1 import format_v1
from proxy.header.v2 import SIGNATURE_V2, format_v2
from proxy.relay.connection import Connection
from proxy.relay.core import FORGED_OR_LOOP
from proxy.relay.limits import Clients
from proxy.relay.listener import _ACCEPTS
from proxy.relay.loop_check import LoopCheck, Verdict, judge
from proxy.relay.side import Side
from proxy.routes import Route
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort
from tests.kit.ports import free_port
from tests.kit.relaying import V4, World, read_to_end, received_in, relaying, send_all, sides_of, until

PROTOCOLS = pytest.mark.parametrize("protocol", [ProxyProtocol.V1, ProxyProtocol.V2])
SPEAKS_FIRST = pytest.mark.parametrize("payload", [b"hello", b""], ids=["client speaks first", "client waits"])


def point(world: World, to: World) -> None:
    """Set a relay's backend to another relay's listener, as if address translation hid it."""
    (backend,) = world.relay.backends.values()
    backend._pool.replace([address_of(V4, to.endpoint.port)])


async def end_of(world: World, payload: bytes) -> tuple[bytes, str]:
    """The end of a client's connection; its payload is sent before the relay runs."""
    with socket.create_connection((V4, world.endpoint.port)) as client:
        client.sendall(payload)
        client.setblocking(False)
        return await read_to_end(trio.socket.from_stdlib_socket(client))


@PROTOCOLS
@SPEAKS_FIRST
async def test_a_relay_that_leads_to_itself_ends_the_first_round(protocol: ProxyProtocol, payload: bytes) -> None:
    async with relaying(proxy_protocol=protocol) as world:
        point(world, world)
        with capture_logs() as logs:
            assert await end_of(world, payload) == (b"", "reset")
        assert world.relay.core.counters.headers_refused == 1
        # A waiting client is recognised only by its header; by then, up to _ACCEPTS clients have been accepted.
        assert 2 <= world.relay.core.counters.connections <= (3 if payload else 1 + _ACCEPTS)
        await until(lambda: world.relay.core.counters.active == 0)
        assert [entry["event"] for entry in logs] == [FORGED_OR_LOOP]


@PROTOCOLS
@SPEAKS_FIRST
async def test_a_ring_of_relays_ends_after_a_round(protocol: ProxyProtocol, payload: bytes) -> None:
    async with relaying(proxy_protocol=protocol) as first, relaying() as second, relaying() as third:
        point(first, second)
        point(second, third)
        point(third, first)
        assert await end_of(first, payload) == (b"", "reset")
        counts = [world.relay.core.counters for world in (first, second, third)]
        await until(lambda: not any(count.active for count in counts))
        assert sum(count.headers_refused for count in counts) >= 1
        # Each relay may be some rounds ahead of the header that reveals the loop.
        assert 4 <= sum(count.connections for count in counts) <= 3 * (1 + _ACCEPTS)


@PROTOCOLS
async def test_relays_in_a_row_are_no_ring(protocol: ProxyProtocol) -> None:
    async with relaying(proxy_protocol=protocol) as first, relaying(proxy_protocol=protocol) as second:
        point(first, second)
        with socket.create_connection((V4, first.endpoint.port)) as client:
            client.sendall(b"hello")
            backend, header = await second.accept()
            with backend:
                assert header.source is not None
                assert await backend.recv(1000)


@PROTOCOLS
@SPEAKS_FIRST
async def test_a_loop_over_a_port_that_was_opened_later_ends(protocol: ProxyProtocol, payload: bytes) -> None:
    async with relaying() as world:
        port = free_port()
        backend = Backend(HostPort("backend.example.org", 80), listeners=())
        world.relay.open_port(Route(Endpoint(V4, port), backend.destination, protocol, 443), backend)
        # As if address translation hid that it is ours.
        backend._pool.replace([address_of(V4, port)])
        with socket.create_connection((V4, port)) as client:
            client.sendall(payload)
            client.setblocking(False)
            assert await read_to_end(trio.socket.from_stdlib_socket(client)) == (b"", "reset")
        assert world.relay.core.counters.headers_refused == 1
        await until(lambda: world.relay.core.counters.active == 0)


@SPEAKS_FIRST
async def test_a_client_that_forges_a_loop_says_nothing_of_the_backend(payload: bytes) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend, capture_logs() as logs:
            forged = format_v1(Header(Endpoint(*client.getsockname()), world.endpoint))
            for _ in range(3):
                if payload:
                    assert await end_of(world, forged + payload) == (b"", "reset")
                    continue
                # The backend is connected before the header comes.
                with await world.connect() as liar:
                    second, _ = await world.accept()
                    with second:
                        await liar.send(forged)
                        assert (await read_to_end(liar))[1] == "reset"
            await client.send(b"hello")
            assert await received_in(backend, 5) == b"hello"
        (one,) = world.relay.backends.values()
        counters = world.relay.core.counters
        assert (one.health.failure, sum(counters.backend_errors.values()), counters.headers_refused) == (None, 0, 3)
        # Once a minute, whatever a client does.
        assert [entry["event"] for entry in logs] == [FORGED_OR_LOOP]


async def test_a_client_that_writes_a_header_of_itself_is_relayed() -> None:
    async with relaying() as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            host, port = client.getsockname()
            own = f"PROXY TCP4 {host} {V4} {port} {world.endpoint.port}\r\n".encode()
            client.sendall(own)
            backend, _ = await world.accept()
            with backend:
                assert await backend.recv(100) == own


FILLER = b"x" * 65_536


def fill(connection: Connection) -> int:
    """Have a backend that accepts no more; returns how many octets are on the way to it."""
    sink, sent = connection.backend, 0
    with suppress(BlockingIOError):
        while True:
            sent += sink.sock.send(FILLER)
    sink.pending = FILLER
    connection._await_room(sink)
    return sent + len(FILLER)


@pytest.mark.parametrize("headers", [8, 15])
async def test_headers_that_wait_for_a_full_backend_are_counted_once(
    monkeypatch: pytest.MonkeyPatch, headers: int
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(LoopCheck, "_ends", counting(LoopCheck._ends, looks))
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            connection = sides_of(world)
            filled = fill(connection)
            host, port = client.getsockname()
            own = f"PROXY TCP4 {host} {V4} {port} {world.endpoint.port}\r\n".encode()
            for count in range(1, headers + 1):
                await client.send(own)
                await until(lambda count=count: len(looks) >= count)
            await received_in(backend, filled)
            assert await received_in(backend, headers * len(own)) == headers * own
            # A header may still follow, and is counted with those before it.
            await send_all(client, own * (16 - headers))
            assert (await read_to_end(client))[1] == "reset"
            assert world.relay.core.counters.headers_refused == 1


async def test_payload_behind_a_header_that_has_been_passed_on_ends_the_check() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            connection = sides_of(world)
            host, port = client.getsockname()
            own = f"PROXY TCP4 {host} {V4} {port} {world.endpoint.port}\r\n".encode()
            for part in (own[:9], own[9:], own, b"GET / HTTP/1.1\r\n"):
                assert isinstance(connection.client.owner, LoopCheck)
                await client.send(part)
                assert await received_in(backend, len(part)) == part
            assert connection.client.owner is connection


def counting(ends: Callable[[LoopCheck, Side], bool], looks: list[int]) -> Callable[[LoopCheck, Side], bool]:
    """The method, with a note of each call."""

    def look(self: LoopCheck, client: Side) -> bool:
        looks.append(client.fd)
        return ends(self, client)

    return look


WAITING = Endpoint("192.0.2.1", 1000)
OTHER = Endpoint("192.0.2.2", 2000)
RELAY = Endpoint("192.0.2.80", 443)


def holding(*endpoints: Endpoint) -> Clients:
    clients = Clients(most_each=100)
    for one in endpoints:
        assert clients.enter(one.host, one.port)
    return clients


HEADER = Header(WAITING, RELAY)
FOREIGN = Header(Endpoint("192.0.2.7", 7), RELAY)


@pytest.mark.parametrize(
    ("received", "verdict"),
    [
        pytest.param(format_v1(HEADER), Verdict.LOOP, id="version 1"),
        pytest.param(format_v2(HEADER), Verdict.LOOP, id="version 2"),
        pytest.param(format_v2(HEADER, checksum=True) + b"GET /", Verdict.LOOP, id="with payload behind"),
        pytest.param(format_v1(FOREIGN) + format_v2(HEADER), Verdict.LOOP, id="around a ring of two"),
        pytest.param(format_v1(FOREIGN) * 15 + format_v1(HEADER), Verdict.LOOP, id="around a ring of sixteen"),
        pytest.param(format_v1(FOREIGN) * 15, Verdict.UNDECIDED, id="fifteen of somebody who is not here"),
        pytest.param(format_v1(FOREIGN) * 16, Verdict.LOOP, id="more than anybody but a ring makes"),
        pytest.param(format_v1(FOREIGN), Verdict.UNDECIDED, id="somebody who is not here"),
        pytest.param(format_v1(Header(OTHER, RELAY)), Verdict.UNDECIDED, id="of itself"),
        pytest.param(format_v1(HEADER)[:-1], Verdict.UNDECIDED, id="not whole"),
        pytest.param(b"PROXY UNKNOWN\r\n", Verdict.UNDECIDED, id="a health check"),
        pytest.param(b"PROXY nonsense\r\n", Verdict.NO_LOOP, id="no header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + format_v1(HEADER), Verdict.NO_LOOP, id="behind something else"),
        pytest.param(format_v1(FOREIGN) + b"GET /", Verdict.NO_LOOP, id="somebody who is not here, and payload"),
        pytest.param(format_v1(FOREIGN) + format_v2(HEADER)[:9], Verdict.UNDECIDED, id="an incomplete second header"),
        pytest.param(SIGNATURE_V2 + b"\x21\x11\xff\xff" + bytes(2000), Verdict.NO_LOOP, id="an endless header"),
        pytest.param(b"PRO", Verdict.UNDECIDED, id="the begin of a header"),
        pytest.param(b"POST /", Verdict.NO_LOOP, id="nearly the begin of a header"),
        pytest.param(b"", Verdict.UNDECIDED, id="nothing"),
    ],
)
def test_a_connection_of_this_relay_is_recognised_by_its_header(received: bytes, verdict: Verdict) -> None:
    clients = holding(WAITING, OTHER)
    assert judge(received, clients, host=OTHER.host, port=OTHER.port) is verdict


def test_the_header_of_a_closed_connection_is_no_loop() -> None:
    clients = holding(WAITING, OTHER)
    clients.leave(WAITING.host, WAITING.port)
    assert judge(format_v1(HEADER), clients, host=OTHER.host, port=OTHER.port) is Verdict.UNDECIDED


def test_ipv4_clients_of_a_socket_for_both_families_are_known_by_their_own_form() -> None:
    clients = holding(Endpoint("::ffff:192.0.2.1", 1000))
    assert judge(format_v1(HEADER), clients, host=OTHER.host, port=OTHER.port) is Verdict.LOOP


@given(
    st.binary(max_size=300).flatmap(lambda tail: st.sampled_from([tail, b"PROXY " + tail, format_v1(FOREIGN) + tail]))
)
def test_any_payload_is_looked_at_without_harm(payload: bytes) -> None:
    assert judge(payload, holding(OTHER), host=OTHER.host, port=OTHER.port) is not Verdict.LOOP
