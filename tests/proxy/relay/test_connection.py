"""What passes through a relayed connection, and how its ends are passed on."""

from __future__ import annotations

import select
import socket

import pytest
import trio

from proxy.relay import connection
from proxy.relay.copying import BUFFER
from proxy.relay.splice import SIZE
from tests.kit.relaying import V4, V6, World, read_to_end, relaying, reset, send_all, until

PATTERN = bytes(range(251))


def pattern(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


@pytest.mark.parametrize("host", [pytest.param(V4, id="IPv4"), pytest.param(V6, id="IPv6")])
async def test_octets_arrive_whole_and_in_order_both_ways(host: str) -> None:
    async with relaying(host) as world:
        client, backend = await world.pair()
        with client, backend:
            sent = pattern(3_000_000)
            for sender, receiver in ((client, backend), (backend, client)):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send_all, sender, sent)
                    received = bytearray()
                    while len(received) < len(sent):
                        received += await receiver.recv(65_536)
                assert received == sent


async def test_both_directions_move_at_once() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        sent = pattern(2_000_000)
        ends: dict[str, tuple[bytes, str]] = {}

        async def send_and_finish(stream: trio.socket.SocketType) -> None:
            await send_all(stream, sent)
            stream.shutdown(socket.SHUT_WR)

        async def read(name: str, stream: trio.socket.SocketType) -> None:
            ends[name] = await read_to_end(stream)

        with client, backend:
            async with trio.open_nursery() as nursery:
                for name, stream in (("client", client), ("backend", backend)):
                    nursery.start_soon(send_and_finish, stream)
                    nursery.start_soon(read, name, stream)
        assert ends == {"client": (sent, "fin"), "backend": (sent, "fin")}
        await until(lambda: world.relay.counters.active == 0)


@pytest.mark.parametrize("size", [1, 2, BUFFER - 1, BUFFER, BUFFER + 1, 5 * BUFFER], ids=lambda size: f"{size} octets")
async def test_octets_and_an_end_that_come_at_once_both_arrive(size: int) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, backend, pattern(size))
                if size > 4 * BUFFER:
                    nursery.start_soon(trio.sleep, 0)
            backend.shutdown(socket.SHUT_WR)
            assert await read_to_end(client) == (pattern(size), "fin")


async def test_one_octet_at_a_time_arrives() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            for octet in b"one octet at a time":
                await client.send(bytes([octet]))
                assert await backend.recv(10) == bytes([octet])


@pytest.mark.parametrize("first", ["client", "backend"])
async def test_after_a_half_close_the_other_direction_goes_on(first: str) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            ended, going_on = (client, backend) if first == "client" else (backend, client)
            ended.shutdown(socket.SHUT_WR)
            assert await going_on.recv(10) == b""
            for octets in (b"still", b"here"):
                await going_on.send(octets)
                assert await ended.recv(10) == octets
            going_on.shutdown(socket.SHUT_WR)
            assert await read_to_end(ended) == (b"", "fin")
        await until(lambda: world.relay.counters.active == 0)


@pytest.mark.parametrize("size", [0, 1, BUFFER, 1_000_000], ids=lambda size: f"{size} octets")
async def test_a_reset_by_the_backend_follows_what_it_sent(size: int) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            async with trio.open_nursery() as nursery:
                received = Reading(client)
                nursery.start_soon(received.read)
                await send_all(backend, pattern(size))
                # The backend's kernel may still hold octets, and a reset would purge them before they were received.
                await until(lambda: acknowledged(backend))
                reset(backend)
            assert received.end == (pattern(size), "reset")
        await until(lambda: world.relay.counters.active == 0)


class Reading:
    """What a stream gives in the background."""

    def __init__(self, stream: trio.socket.SocketType) -> None:
        self.stream = stream
        self.end = (b"", "not yet")

    async def read(self) -> None:
        self.end = await read_to_end(self.stream)


def acknowledged(stream: trio.socket.SocketType) -> bool:
    return connection.Side(None, stream._sock).unsent() == 0  # type: ignore[arg-type, attr-defined]


async def test_a_reset_reaches_a_slow_client_after_everything_that_the_relay_had_received() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            size = 300_000
            await send_all(backend, pattern(size))
            await until(lambda: acknowledged(backend))
            reset(backend)
            await until(lambda: sides_of(world).backend.broken)
            received, end = await read_to_end(client)
            assert (received, end) == (pattern(size), "reset")


def sides_of(world: World) -> connection.Connection:
    (only,) = world.relay._alive
    assert isinstance(only, connection.Connection)
    return only


async def test_a_reset_by_the_client_reaches_the_backend_after_what_it_sent() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            await send_all(client, b"half a requ")
            await until(lambda: acknowledged(client))
            reset(client)
            assert await read_to_end(backend) == (b"half a requ", "reset")
        await until(lambda: world.relay.counters.active == 0)


async def test_a_reset_by_the_client_reaches_a_backend_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RESET_GRACE", 0.1)
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            with trio.move_on_after(0.3):
                await send_all(client, bytes(50_000_000))
            reset(client)
            await until(lambda: world.relay.counters.active == 0)
            assert (await read_to_end(backend))[1] == "reset"


async def test_a_client_that_resets_while_the_backend_sends_ends_the_backend() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all_or_fail, backend)
                assert await client.recv(1000)
                reset(client)
        await until(lambda: world.relay.counters.active == 0)


async def send_all_or_fail(stream: trio.socket.SocketType) -> None:
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        await send_all(stream, bytes(500_000_000))


async def test_a_client_that_closes_without_reading_ends_the_backend() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all_or_fail, backend)
                assert await client.recv(1000)
                client.close()
        await until(lambda: world.relay.counters.active == 0)


async def test_a_backend_that_resets_an_upload_has_its_last_words_delivered() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            reading = Reading(client)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reading.read)
                await send_all(backend, b"413 too large")
                await until(lambda: acknowledged(backend))
                nursery.start_soon(send_all_or_fail, client)
                await backend.recv(1000)
                # Unread octets make the close a reset.
                backend.close()
            # The reset itself was shown to whichever of the two calls came first, and the send demands it.
            assert reading.end[0] == b"413 too large"


async def test_a_slow_reader_stops_the_sender_and_costs_a_buffer_or_a_pipe() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            sent = 0
            # The sender stops when the kernel's buffers and ours are full; a second of silence shows that it has.
            while True:
                with trio.move_on_after(1) as scope:
                    sent += await backend.send(bytes(1_000_000))
                if scope.cancelled_caught:
                    break
            assert sent < 50_000_000
            assert 0 < len(sides_of(world).client.pending) <= max(BUFFER, SIZE)
            backend.shutdown(socket.SHUT_WR)
            received, end = await read_to_end(client)
            assert (len(received), end) == (sent, "fin")


async def test_an_idle_connection_is_reset_after_the_idle_timeout() -> None:
    async with relaying(idle_timeout=0.3) as world:
        client, backend = await world.pair()
        with client, backend:
            assert await read_to_end(client) == (b"", "reset")
            assert await read_to_end(backend) == (b"", "reset")


async def test_octets_put_off_the_idle_timeout() -> None:
    # A busy machine may hold this process for seconds.
    async with relaying(idle_timeout=4.0) as world:
        client, backend = await world.pair()
        with client, backend:
            begun = trio.current_time()
            while trio.current_time() - begun < 5.0:
                await client.send(b"x")
                assert await backend.recv(1) == b"x"
                with trio.move_on_after(0.2):
                    await backend.recv(1)


async def test_a_half_closed_connection_ends_after_the_half_close_timeout() -> None:
    async with relaying(half_close_timeout=0.3) as world:
        client, backend = await world.pair()
        with client, backend:
            client.shutdown(socket.SHUT_WR)
            assert await read_to_end(backend) == (b"", "fin")
            assert await read_to_end(client) == (b"", "reset")


async def test_connections_that_live_are_kept_alive_by_the_kernel() -> None:
    async with relaying(idle_timeout=2.0) as world:
        client, backend = await world.pair()
        with client, backend:
            sides = sides_of(world)
            sides.on_due(0.0)
            for side in (sides.client, sides.backend):
                assert side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


async def received_in(stream: trio.socket.SocketType, length: int) -> bytes:
    """So many octets."""
    octets = b""
    while len(octets) < length:
        octets += await stream.recv(length - len(octets))
    return octets


@pytest.mark.parametrize("first", [b"", b"little", bytes(3000)], ids=["nothing", "one segment", "several"])
async def test_no_octet_waits_for_an_acknowledgement(first: bytes) -> None:
    async with relaying() as world:
        client = await world.connect()
        await send_all(client, first)
        backend, _ = await world.accept()
        with client, backend:
            connected = sides_of(world)
            # The first words leave in one segment, or are not little; whoever says more is sent at once.
            await send_all(client, b"more")
            assert await received_in(backend, len(first) + 4) == first + b"more"
            for side in (connected.client, connected.backend):
                assert side.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize("events", [select.EPOLLERR, select.EPOLLHUP, select.EPOLLRDHUP, 0x3FFF], ids=hex)
async def test_an_event_of_an_earlier_socket_with_the_same_number_does_no_harm(events: int) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            connected = sides_of(world)
            for side in (connected.client, connected.backend):
                side.handle(events)
            for sender, receiver in ((client, backend), (backend, client)):
                await sender.send(b"still here")
                assert await receiver.recv(20) == b"still here"


async def test_a_fault_in_one_connection_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        other_client, other_backend = await world.pair()
        with client, backend, other_client, other_backend:
            with monkeypatch.context() as patch:
                patch.setattr(connection.Connection, "handle", fail)
                await client.send(b"x")
                assert (await read_to_end(client))[1] == "reset"
            await other_client.send(b"still here")
            assert await other_backend.recv(20) == b"still here"


def fail(*_: object) -> None:
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize("size", [3, BUFFER, 40 * BUFFER], ids=lambda size: f"{size} octets")
@pytest.mark.parametrize("ends", [True, False], ids=["and an end", "and no end"])
async def test_what_is_before_and_behind_urgent_data_arrives(size: int, ends: bool) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            received = b""

            async def send() -> None:
                await send_all(client, pattern(size))
                await client.send(b"!", socket.MSG_OOB)
                await send_all(client, pattern(size))
                if ends:
                    client.shutdown(socket.SHUT_WR)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                received = await received_in(backend, 2 * size)
            # The urgent octet is no part of the stream (RFC 9293 section 3.8.5), and no relay passes it on.
            assert received == 2 * pattern(size)
            if ends:
                assert await read_to_end(backend) == (b"", "fin")
