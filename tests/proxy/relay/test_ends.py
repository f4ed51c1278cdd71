"""How the ends of a relayed connection are passed on: FIN, RST, and the idle and half-close timers."""

from __future__ import annotations

import socket
import struct
from time import monotonic

import pytest
import trio

from proxy.header.protocol import ProxyProtocol
from proxy.relay import ends
from proxy.relay.connection import Connection
from proxy.relay.core import BUFFER
from proxy.settings import LONG_IDLE
from tests.kit.relaying import acknowledged, pattern, read_to_end, relaying, reset, send_all, sides_of, until


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
        await until(lambda: world.relay.core.counters.active == 0)


@pytest.mark.parametrize("size", [0, 1, BUFFER, 1_000_000], ids=lambda size: f"{size} octets")
async def test_a_reset_by_the_backend_follows_what_it_sent(size: int) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            async with trio.open_nursery() as nursery:
                received = Reading(client)
                nursery.start_soon(received.read)
                await send_all(backend, pattern(size))
                # The backend's kernel may still hold data, which RST would discard.
                await until(lambda: acknowledged(backend))
                reset(backend)
            assert received.end == (pattern(size), "reset")
        await until(lambda: world.relay.core.counters.active == 0)


@pytest.mark.parametrize("half_closed", [False, True], ids=["both directions open", "client has finished"])
async def test_the_last_data_and_the_end_after_it_leave_in_one_segment(half_closed: bool) -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            await client.send(b"ask")
            assert await backend.recv(10) == b"ask"
            if half_closed:
                client.shutdown(socket.SHUT_WR)
                assert await backend.recv(10) == b""
            before = segments_in(client)
            # Without a checkpoint in between, so that the relay learns of both at once.
            assert backend._sock.send(b"answer") == 6  # type: ignore[attr-defined]
            backend.close()
            assert await read_to_end(client) == (b"answer", "fin")
            assert segments_in(client) == before + 1


async def test_data_before_a_reset_is_not_held_back_for_an_end() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            assert backend._sock.send(b"answer") == 6  # type: ignore[attr-defined]
            await until(lambda: acknowledged(backend))
            reset(backend)
            assert await read_to_end(client) == (b"answer", "reset")


def segments_in(stream: trio.socket.SocketType) -> int:
    """tcpi_segs_in of struct tcp_info (linux/tcp.h)."""
    return int(struct.unpack_from("I", stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), 140)[0])


class Reading:
    """Reads a stream in the background."""

    def __init__(self, stream: trio.socket.SocketType) -> None:
        self.stream = stream
        self.end = (b"", "not yet")

    async def read(self) -> None:
        self.end = await read_to_end(self.stream)


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


async def test_a_reset_by_the_client_reaches_the_backend_after_what_it_sent() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            await send_all(client, b"half a requ")
            await until(lambda: acknowledged(client))
            reset(client)
            assert await read_to_end(backend) == (b"half a requ", "reset")
        await until(lambda: world.relay.core.counters.active == 0)


async def test_a_reset_by_the_client_reaches_a_backend_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "RESET_GRACE", 0.1)
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            with trio.move_on_after(0.3):
                await send_all(client, bytes(50_000_000))
            reset(client)
            await until(lambda: world.relay.core.counters.active == 0)
            assert (await read_to_end(backend))[1] == "reset"


async def test_a_client_that_resets_while_the_backend_sends_ends_the_backend() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with backend:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all_or_fail, backend)
                assert await client.recv(1000)
                reset(client)
        await until(lambda: world.relay.core.counters.active == 0)


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
        await until(lambda: world.relay.core.counters.active == 0)


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
                # Unread data turns the close into RST.
                backend.close()
            # RST is reported to the first of two calls only, and send_all_or_fail requires it.
            assert reading.end[0] == b"413 too large"


@pytest.mark.parametrize("answers", [True, False], ids=["they end too", "they never do"])
async def test_both_sides_of_an_idle_connection_get_fin_and_reset_only_if_they_stay(answers: bool) -> None:
    async with relaying(idle_timeout=0.3) as world:
        client, backend = await world.pair()
        with client, backend:
            for side in (client, backend):
                assert await read_to_end(side) == (b"", "fin")
            assert world.relay.core.counters.active == 1
            if answers:
                backend.close()
            else:
                world.relay.core.tick(monotonic() + 60)
                assert world.relay.core.counters.active == 1
                world.relay.core.tick(monotonic() + 121)
                with pytest.raises(BrokenPipeError):
                    await backend.send(b"x")
            await until(lambda: world.relay.core.counters.active == 0)


async def test_what_comes_after_the_end_of_an_idle_connection_ends_it() -> None:
    async with relaying(idle_timeout=0.3) as world:
        client, backend = await world.pair()
        with client, backend:
            assert await read_to_end(client) == (b"", "fin")
            await client.send(b"too late")
            backend.shutdown(socket.SHUT_WR)
            await until(lambda: world.relay.core.counters.active == 0)
            assert (await read_to_end(backend))[0] == b""


@pytest.mark.parametrize(
    ("protocol", "limit"), [(ProxyProtocol.V1, LONG_IDLE), (ProxyProtocol.NONE, None), (ProxyProtocol.PASS, None)]
)
async def test_without_a_flag_only_a_connection_with_a_header_ends_when_it_is_idle(
    protocol: ProxyProtocol, limit: float | None
) -> None:
    async with relaying(proxy_protocol=protocol) as world:
        client = await world.connect()
        backend, _ = await world.backend.accept()
        with client, backend:
            await until(lambda: isinstance(next(iter(world.relay.core.alive)), Connection))
            connected = sides_of(world)
            connected.active_at -= (limit or 1e9) - 30
            world.relay.core.tick(monotonic() + 10)
            assert connected.ended is None
            # Its timers go on: the kernel looks for peers that are gone.
            assert connected.kept_alive
            world.relay.core.tick(monotonic() + 45)
            assert (connected.ended is not None) == (limit is not None)


@pytest.mark.parametrize("goes_on", [True, False], ids=["a slow one", "one that has stopped"])
async def test_a_reader_who_still_takes_the_answer_after_its_end_gets_all_of_it(goes_on: bool) -> None:
    sent = pattern(40_000)
    async with relaying() as world:
        client, backend = await world.pair(receive_buffer=4096)
        with client, backend:
            connected = sides_of(world)
            await send_all(backend, sent)
            backend.close()
            # All of it waits in the kernel: nothing is left that the relay could move.
            await until(lambda: connected.client.finished)
            begun, received = monotonic(), b""
            connected.on_due(begun + 100)
            while goes_on and len(received) < 25_000:
                before = connected.client.unsent()
                while connected.client.unsent() == before:
                    received += await client.recv(1000)
                    await trio.sleep(0.001)
                begun += 100
                connected.on_due(begun + 100)
            connected.on_due(begun + 219)
            assert world.relay.core.counters.active == int(goes_on)
            if goes_on:
                rest, end = await read_to_end(client)
                assert (received + rest, end) == (sent, "fin")


async def test_octets_put_off_the_idle_timeout() -> None:
    # The clock is set by hand: a busy machine may suspend this process for longer than a timeout that a test waits out.
    async with relaying(idle_timeout=1000) as world:
        client, backend = await world.pair()
        with client, backend:
            connected = sides_of(world)
            for sender, receiver, later in ((client, backend, 700), (backend, client, 900)):
                # Nothing has moved for nearly as long as is allowed.
                connected.active_at -= 999
                await sender.send(b"x")
                assert await receiver.recv(1) == b"x"
                world.relay.core.tick(monotonic() + later)
                assert world.relay.core.counters.active == 1
            connected.active_at -= 999
            world.relay.core.tick(monotonic() + 950)
            assert await read_to_end(client) == (b"", "fin")


async def test_a_half_closed_connection_ends_after_the_half_close_timeout() -> None:
    async with relaying(half_close_timeout=0.3) as world:
        client, backend = await world.pair()
        with client, backend:
            client.shutdown(socket.SHUT_WR)
            assert await read_to_end(backend) == (b"", "fin")
            assert await read_to_end(client) == (b"", "reset")


async def test_connections_that_live_are_kept_alive_by_the_kernel() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            sides = sides_of(world)
            sides.on_due(0.0)
            for side in (sides.client, sides.backend):
                assert side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
