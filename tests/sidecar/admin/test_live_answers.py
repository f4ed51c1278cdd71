"""Live answers on real loopback sockets: clients that watch, read nothing, leave, or are too many."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sidecar.admin import sending
from sidecar.admin import server as admin
from sidecar.admin.answers import NDJSON, Answer
from sidecar.admin.live_answers import HEARTBEAT_SECONDS, most_live, with_heartbeat
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint

WATCH = b"GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n"


class World:
    """A server with a live answer, whose lines a test sends."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.watching = 0
        self.changed = trio.Event()
        self.sources: list[trio.MemorySendChannel[bytes]] = []

    async def watch(self) -> AsyncGenerator[bytes, None]:
        send, receive = trio.open_memory_channel[bytes](10)
        self.sources.append(send)
        self.change(1)
        try:
            while True:
                try:
                    yield await receive.receive()
                except trio.EndOfChannel:
                    return
        finally:
            self.change(-1)

    def change(self, by: int) -> None:
        self.watching += by
        self.changed.set()
        self.changed = trio.Event()

    async def wait_for_watchers(self, count: int) -> None:
        while self.watching != count:
            await self.changed.wait()

    async def connect(self, octets: bytes = b"") -> trio.SocketStream:
        stream = await trio.open_tcp_stream(self.endpoint.host, self.endpoint.port)
        await stream.send_all(octets)
        return stream

    async def ask(self, target: str, method: str = "GET") -> bytes:
        async with await self.connect(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()) as stream:
            return await read_all(stream)


async def read_all(stream: trio.SocketStream) -> bytes:
    received = bytearray()
    with contextlib.suppress(trio.BrokenResourceError):
        async for part in stream:
            received += part
    return bytes(received)


async def read_until(stream: trio.SocketStream, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        more = await stream.receive_some()
        assert more, received
        received += more
    return received


async def flood() -> AsyncIterator[bytes]:
    while True:
        await trio.lowlevel.checkpoint()
        yield b"x" * 100_000 + b"\n"


async def fail() -> AsyncIterator[bytes]:
    yield b"1\n"
    raise RuntimeError("a bug in a source")


@asynccontextmanager
async def served() -> AsyncIterator[World]:
    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    world = World(bound_endpoint(listener))
    async with trio.open_nursery() as nursery:
        await nursery.start(
            lambda *, task_status: serve_admin(
                [listener],
                readiness=lambda: Readiness(ready=True, reason="ready"),
                registry=CollectorRegistry(),
                page=lambda: "",
                routes={
                    "/watch": lambda _: Answer(200, world.watch(), NDJSON),
                    "/flood": lambda _: Answer(200, flood(), NDJSON),
                    "/fail": lambda _: Answer(200, fail(), NDJSON),
                },
                task_status=task_status,
            )
        )
        yield world
        nursery.cancel_scope.cancel()


async def test_lines_come_one_by_one_and_the_end_is_marked() -> None:
    async with served() as world, await world.connect(WATCH) as stream:
        head = await read_until(stream, b"\r\n\r\n")
        assert b"200" in head.splitlines()[0]
        assert b"transfer-encoding: chunked" in head.lower()
        assert b"content-type: application/x-ndjson" in head.lower()
        await world.wait_for_watchers(1)
        for line in (b"one\n", b"two\n"):
            await world.sources[0].send(line)
            assert await read_until(stream, line + b"\r\n") == b"4\r\n" + line + b"\r\n"
        await world.sources[0].aclose()
        assert (await read_all(stream)).endswith(b"0\r\n\r\n")
        await world.wait_for_watchers(0)


async def test_head_gives_the_headers_alone_and_starts_nothing() -> None:
    async with served() as world:
        answer = await world.ask("/watch", "HEAD")
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"\r\n\r\n")
        assert not world.sources


@pytest.mark.parametrize("how", ["half-closed", "closed", "reset", "talkative"])
async def test_a_client_that_leaves_ends_the_answer_without_an_event(how: str) -> None:
    async with served() as world:
        stream = await world.connect(WATCH)
        await world.wait_for_watchers(1)
        if how == "half-closed":
            await stream.send_eof()
        elif how == "talkative":
            await stream.send_all(b"x" * 100_000)
        else:
            if how == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            await stream.aclose()
        await world.wait_for_watchers(0)
        await stream.aclose()
        assert b"ok" in await world.ask("/healthz")


async def test_a_client_that_reads_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.1)
    async with served() as world, await world.connect(b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n") as stream:
        # The server must have closed before the client reads: nothing has run for several deadlines.
        await trio.testing.wait_all_tasks_blocked(0.4)
        assert not (await read_all(stream)).endswith(b"0\r\n\r\n")


async def test_a_client_that_reads_is_served_beyond_every_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SEND_SECONDS", 0.2)
    monkeypatch.setattr(sending, "STREAM_SECONDS", 0.2)
    monkeypatch.setattr(admin, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(admin, "ROUTE_SECONDS", 0.2)
    async with served() as world, await world.connect(WATCH) as stream:
        await read_until(stream, b"\r\n\r\n")
        await world.wait_for_watchers(1)
        begun = trio.current_time()
        while trio.current_time() < begun + 0.6:
            await world.sources[0].send(b"tick\n")
            await read_until(stream, b"tick\n\r\n")


async def test_a_bug_in_a_source_cuts_the_answer_and_no_other() -> None:
    async with served() as world:
        answer = await world.ask("/fail")
        assert answer.endswith(b"1\n\r\n")
        assert b"ok" in await world.ask("/healthz")


async def test_one_too_many_is_refused_until_another_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "descriptor_limit", lambda: 64)
    async with served() as world:
        watchers = [await world.connect(WATCH) for _ in range(2)]
        await world.wait_for_watchers(2)
        refused = await world.ask("/watch")
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"There are already 2 live answers here" in refused
        assert world.watching == 2
        await watchers[0].aclose()
        await world.wait_for_watchers(1)
        async with await world.connect(WATCH):
            await world.wait_for_watchers(2)
        await watchers[1].aclose()


async def test_watchers_and_idle_clients_neither_keep_out_a_probe_nor_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin, "descriptor_limit", lambda: 512)
    async with served() as world, contextlib.AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(await world.connect(WATCH)) for _ in range(16)]
        await world.wait_for_watchers(16)
        for _ in range(64):
            await stack.enter_async_context(await world.connect())
        assert b"ready" in await world.ask("/readyz")
        assert world.watching == 16
        for source in world.sources:
            await source.send(b"still here\n")
        for watcher in watchers:
            await read_until(watcher, b"still here\n\r\n")


@pytest.mark.parametrize(("places", "live"), [(1, 1), (4, 1), (8, 2), (63, 15), (64, 16), (256, 16)])
def test_live_answers_take_a_quarter_of_the_places_at_most(places: int, live: int) -> None:
    assert most_live(places) == live


async def test_a_quiet_source_sends_an_empty_line_and_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def receive() -> bytes:
        if times:
            await trio.sleep_until(times[0])
            times.pop(0)
            return b"line\n"
        raise trio.EndOfChannel

    times = [autojump_clock.current_time() + seconds for seconds in (3, 9, 20)]
    seen = [(trio.current_time(), line) async for line in with_heartbeat(receive)]
    assert [line for _, line in seen] == [b"line\n", b"\n", b"line\n", b"\n", b"\n", b"line\n"]
    assert max(later - earlier for (earlier, _), (later, _) in itertools.pairwise(seen)) <= HEARTBEAT_SECONDS
