"""Data through a relayed connection, up to its end."""

from __future__ import annotations

import select
import socket

import pytest
import trio

from proxy.relay import connection
from proxy.relay.core import BUFFER
from proxy.relay.splice import SIZE
from tests.kit.relaying import V4, V6, pattern, read_to_end, received_in, relaying, send_all, sides_of, until


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
        await until(lambda: world.relay.core.counters.active == 0)


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


async def test_a_slow_reader_stops_the_sender_and_costs_a_buffer_or_a_pipe() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            sent, full = 0, False
            # The sender stops when the buffers of kernel and relay are full: nothing goes on for a second, and the
            # relay holds data. Without the latter, the machine was only busy.
            while not full:
                with trio.move_on_after(1) as scope:
                    sent += await backend.send(bytes(1_000_000))
                full = scope.cancelled_caught and bool(sides_of(world).client.pending)
            assert sent < 50_000_000
            assert 0 < len(sides_of(world).client.pending) <= max(BUFFER, SIZE)
            backend.shutdown(socket.SHUT_WR)
            received, end = await read_to_end(client)
            assert (len(received), end) == (sent, "fin")


@pytest.mark.parametrize("first", [b"", b"little", bytes(3000)], ids=["nothing", "one segment", "several"])
async def test_no_octet_waits_for_an_acknowledgement(first: bytes) -> None:
    async with relaying() as world:
        client = await world.connect()
        await send_all(client, first)
        backend, _ = await world.accept()
        with client, backend:
            connected = sides_of(world)
            # The first payload leaves in one segment or is large; later data is sent at once.
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


@pytest.mark.parametrize("size", [0, 3, BUFFER, 40 * BUFFER], ids=lambda size: f"{size} octets")
@pytest.mark.parametrize("ends", [True, False], ids=["and an end", "and no end"])
@pytest.mark.parametrize(
    # TCP has at most one urgent octet pending (RFC 6093 section 2): of a backend, a second one may displace the first.
    ("sender", "count"),
    [("client", 2), ("backend", 1)],
    ids=["from the client", "from the backend"],
)
async def test_urgent_data_arrives_in_line_with_what_is_before_and_behind(
    size: int, ends: bool, sender: str, count: int
) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            source, sink = (client, backend) if sender == "client" else (backend, client)

            async def send() -> None:
                for _ in range(count):
                    await send_all(source, pattern(size))
                    await source.send(b"!", socket.MSG_OOB)
                await send_all(source, pattern(size) + b".")
                if ends:
                    source.shutdown(socket.SHUT_WR)

            expected = (pattern(size) + b"!") * count + pattern(size) + b"."
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                assert await received_in(sink, len(expected)) == expected
            if ends:
                assert await read_to_end(sink) == (b"", "fin")


@pytest.mark.parametrize("behind", [b"", b"more"], ids=["alone", "before more"])
async def test_an_urgent_octet_may_come_first_before_there_is_a_backend(behind: bytes) -> None:
    async with relaying() as world:
        with socket.create_connection((V4, world.endpoint.port)) as client:
            # Sent before the relay runs again: this is its first payload.
            client.send(b"!", socket.MSG_OOB)
            client.sendall(behind)
            backend, _ = await world.accept()
            with backend:
                assert await received_in(backend, 1 + len(behind)) == b"!" + behind
