"""Pipes, their pool, and data that goes through them in a relayed connection."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from proxy.relay import limits
from proxy.relay.connection import Connection
from proxy.relay.core import BUFFER
from proxy.relay.splice import SIZE, Pipe, Pipes
from tests.kit.relaying import World, acknowledged, pattern, read_to_end, relaying, reset, send_all, sides_of, until

LARGE = 30_000_000
ZEROS = bytes(1_000_000)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    with Pipes(most=2) as pool:
        yield pool


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        for each in (one, other):
            each.setblocking(False)
        yield one, other


def taken(pool: Pipes) -> Pipe:
    pipe = pool.take()
    assert pipe is not None
    return pipe


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_goes_in_comes_out(pipes: Pipes, pair: tuple[socket.socket, socket.socket]) -> None:
    pipe = taken(pipes)
    pair[0].send(b"through a pipe")
    assert pipe.fill(pair[1].fileno()) == len(pipe) == 14
    assert pipe.drain(pair[1].fileno()) == 14
    assert not pipe
    assert pair[0].recv(100) == b"through a pipe"
    pipes.give_back(pipe)


def test_what_is_held_can_be_taken_back(pipes: Pipes, pair: tuple[socket.socket, socket.socket]) -> None:
    pipe = taken(pipes)
    pair[0].send(pattern(100_000))
    count = pipe.fill(pair[1].fileno())
    assert pipe.take_back() == pattern(100_000)[:count]
    assert not pipe
    pipes.give_back(pipe)


def test_an_empty_socket_and_an_ended_socket_are_distinguished(
    pipes: Pipes, pair: tuple[socket.socket, socket.socket]
) -> None:
    pipe = taken(pipes)
    with pytest.raises(BlockingIOError):
        pipe.fill(pair[1].fileno())
    pair[0].shutdown(socket.SHUT_WR)
    assert pipe.fill(pair[1].fileno()) == 0
    pipes.give_back(pipe)


def test_a_pipe_is_used_again(pipes: Pipes) -> None:
    pipe = taken(pipes)
    pipes.give_back(pipe)
    assert pipes.take() is pipe
    pipes.give_back(pipe)


def test_there_are_no_more_than_was_allowed(pipes: Pipes) -> None:
    both = [taken(pipes), taken(pipes)]
    assert pipes.take() is None
    for pipe in both:
        pipes.give_back(pipe)
    assert pipes.take() in both
    for pipe in both:
        pipe.close()
    pipes._free.clear()


def test_a_pipe_that_still_holds_data_is_not_used_again(
    pipes: Pipes, pair: tuple[socket.socket, socket.socket]
) -> None:
    before = open_files()
    pipe = taken(pipes)
    pair[0].send(b"somebody's secret")
    pipe.fill(pair[1].fileno())
    pipes.give_back(pipe)
    assert open_files() == before
    others = [taken(pipes), taken(pipes)]
    assert pipe not in others
    assert all(not other.held for other in others)
    for other in others:
        pipes.give_back(other)


def test_the_pool_closes_what_is_in_it() -> None:
    before = open_files()
    with Pipes(most=2) as pool:
        pool.give_back(taken(pool))
        assert open_files() == before + 2
    assert open_files() == before


def test_without_a_descriptor_there_is_no_pipe_now_but_maybe_later(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe2", failing(errno.EMFILE))
        assert pipes.take() is None
    pipes.give_back(taken(pipes))


def test_a_pipe_that_may_not_grow_is_used_if_it_is_large_enough(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "fcntl", refusing_to_resize(given=BUFFER))
    pipe = taken(pipes)
    assert pipe.size == BUFFER
    pipes.give_back(pipe)


def test_pipes_of_two_pages_are_not_used_and_not_asked_for_again(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(fcntl, "fcntl", refusing_to_resize(given=8192))
        assert pipes.take() is None
    assert pipes.take() is None
    assert open_files() == before
    assert [entry["event"] for entry in logs] == ["no more pipes to splice with"]


def refusing_to_resize(*, given: int) -> Callable[..., int]:
    def control(_descriptor: int, command: int, _argument: int = 0) -> int:
        if command == fcntl.F_SETPIPE_SZ:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return given

    return control


def failing(number: int) -> Callable[..., int]:
    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


WAYS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "spliced": lambda _: None,
    "copied": lambda patch: patch.setattr(limits, "MOST_PIPES", 0),
    "no splice in the kernel": lambda patch: patch.setattr(os, "splice", failing(errno.ENOSYS)),
    "forbidden": lambda patch: patch.setattr(os, "splice", failing(errno.EPERM)),
    "no socket to splice from": lambda patch: patch.setattr(os, "splice", refusing(into_pipe=True)),
    "no socket to splice to": lambda patch: patch.setattr(os, "splice", refusing(into_pipe=False)),
    "no pipes": lambda patch: patch.setattr(os, "pipe2", failing(errno.EMFILE)),
}


def refusing(*, into_pipe: bool) -> Callable[..., int]:
    """A splice(2) that supports one direction only."""
    real = os.splice

    def splice_one_way(source: int, sink: int, count: int, **how: Any) -> int:
        if is_socket(source) == into_pipe:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(source, sink, count, **how)

    return splice_one_way


def is_socket(descriptor: int) -> bool:
    return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    WAYS[name](monkeypatch)
    return name


async def send_and_finish(stream: trio.socket.SocketType, octets: bytes) -> None:
    await send_all(stream, octets)
    stream.shutdown(socket.SHUT_WR)


async def digest_of(stream: trio.socket.SocketType, into: dict[str, str], name: str) -> None:
    digest = hashlib.sha256()
    while octets := await stream.recv(1_000_000):
        digest.update(octets)
    into[name] = digest.hexdigest()


async def test_large_streams_arrive_whole_both_ways_whatever_the_kernel_can_do(way: str) -> None:
    sent = os.urandom(LARGE)
    found: dict[str, str] = {}
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            async with trio.open_nursery() as nursery:
                for name, stream in (("client", client), ("backend", backend)):
                    nursery.start_soon(send_and_finish, stream, sent)
                    nursery.start_soon(digest_of, stream, found, name)
        await until(lambda: world.relay.core.counters.active == 0)
        assert (world.relay.core.pipes._made > 0) is (way not in {"copied", "no pipes"})
        check_pool(world)
        assert world.relay.core.counters.octets_to_client == world.relay.core.counters.octets_to_backend == LARGE
    assert found == dict.fromkeys(("client", "backend"), hashlib.sha256(sent).hexdigest())


def check_pool(world: World) -> None:
    """Assert that every pipe is back and empty."""
    pool = world.relay.core.pipes
    assert not any(pipe.held for pipe in pool._free)
    assert len(pool._free) == (pool._made if pool._most else 0)


async def test_one_pipe_serves_many_streams_one_after_the_other_and_the_others_copy() -> None:
    sent = pattern(3_000_000)
    ends: list[tuple[bytes, str]] = []

    async def read(stream: trio.socket.SocketType) -> None:
        ends.append(await read_to_end(stream))

    async with relaying(pipes=Pipes(most=1)) as world:
        pairs = [await world.pair() for _ in range(8)]
        async with trio.open_nursery() as nursery:
            for client, backend in pairs:
                nursery.start_soon(send_and_finish, backend, sent)
                nursery.start_soon(read, client)
        for pair in pairs:
            for stream in pair:
                stream.close()
        await until(lambda: world.relay.core.counters.active == 0)
        check_pool(world)
    assert ends == [(sent, "fin")] * len(pairs)


async def test_small_exchanges_never_take_a_pipe() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            for size in (1, 1000, BUFFER - 1):
                for sender, receiver in ((client, backend), (backend, client)):
                    await send_all(sender, pattern(size))
                    received = b""
                    while len(received) < size:
                        received += await receiver.recv(size)
                    assert received == pattern(size)
        assert world.relay.core.pipes._made == 0


async def test_after_a_large_answer_small_ones_are_copied_again() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, backend, pattern(LARGE))
                received = 0
                while received < LARGE:
                    received += len(await client.recv(1_000_000))
            for _ in range(5):
                await backend.send(b"x")
                assert await client.recv(1) == b"x"
            assert sides_of(world).backend.bulk == 0
            check_pool(world)


async def fill(world: World, sender: trio.socket.SocketType) -> int:
    """Send until the connection is full; returns the number of bytes."""
    sent = 0
    while True:
        with trio.move_on_after(1) as scope:
            sent += await sender.send(bytes(1_000_000))
        pending = sides_of(world).client.pending or sides_of(world).backend.pending
        # A second without progress and without anything pending: the machine was only busy.
        if scope.cancelled_caught and pending:
            assert isinstance(pending, Pipe)
            return sent


async def test_a_slow_reader_stops_the_sender_with_a_pipe_at_most_on_the_way() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client, backend:
            sent = await fill(world, backend)
            assert 0 < len(sides_of(world).client.pending) <= SIZE
            backend.shutdown(socket.SHUT_WR)
            received, end = await read_to_end(client)
            assert (len(received), end) == (sent, "fin")
            check_pool(world)


async def test_a_reset_follows_what_is_in_the_pipe() -> None:
    async with relaying() as world:
        client, backend = await world.pair()
        with client:
            # Small enough for the buffers of the kernel and the relay.
            await send_all(backend, pattern(BUFFER))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send_all, backend, pattern(1_500_000))
            await until(lambda: acknowledged(backend))
            reset(backend)
            received, end = await read_to_end(client)
            assert (received, end) == (pattern(BUFFER) + pattern(1_500_000), "reset")
        await until(lambda: world.relay.core.counters.active == 0)
        check_pool(world)


@pytest.mark.parametrize("who", ["client", "backend"])
async def test_a_receiver_that_leaves_takes_its_pipe_out_of_the_pool(who: str) -> None:
    before = open_files()
    async with relaying() as world:
        client, backend = await world.pair()
        receiver, sender = (client, backend) if who == "client" else (backend, client)
        with client, backend:
            await fill(world, sender)
            reset(receiver)
            assert (await read_to_end(sender))[1] == "reset"
        await until(lambda: world.relay.core.counters.active == 0)
        check_pool(world)
    assert open_files() <= before


async def test_a_relay_that_is_cancelled_with_octets_in_pipes_resets_and_leaves_no_pipe() -> None:
    before = open_files()
    async with relaying() as world:
        client, backend = await world.pair()
        await fill(world, backend)
    with client, backend:
        received, end = await read_to_end(client)
        assert end == "reset"
        assert bytes(len(received)) == received
    assert open_files() <= before


async def test_switching_off_splice_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "splice", failing(errno.ENOSYS))
    with capture_logs() as logs:
        async with relaying() as world:
            for _ in range(3):
                client, backend = await world.pair()
                with client, backend:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(send_and_finish, backend, pattern(1_000_000))
                        assert await read_to_end(client) == (pattern(1_000_000), "fin")
    assert [entry["event"] for entry in logs].count("copying instead of splicing") == 1


async def test_a_hundred_readers_that_do_not_read_cost_a_buffer_or_a_pipe_each_and_nothing_more() -> None:
    readers, most = 100, 8
    async with relaying(pipes=Pipes(most=most)) as world, AsyncExitStack() as open_ones:
        pairs = []
        for _ in range(readers):
            # Small buffers: otherwise the kernel would hold gigabytes in all.
            client, backend = await world.pair(receive_buffer=16_384)
            open_ones.enter_context(client)
            open_ones.enter_context(backend)
            backend.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
            pairs.append((client, backend))
        before = resident()
        async with trio.open_nursery() as nursery:
            for _, backend in pairs:
                nursery.start_soon(send_for_ever, backend)
            await until(lambda: pending_in(world) == readers and is_still(world))
            octets = world.relay.core.counters.octets_to_client
            held = [len(each.client.pending) for each in connections_of(world)]
            assert max(held) <= SIZE
            assert world.relay.core.pipes._made <= most
            assert resident() - before < 2 * readers * BUFFER
            # A client that leaves and a client that reads are not affected by the others.
            assert len(await pairs[0][0].recv(1000)) == 1000
            reset(pairs[1][0])
            await until(lambda: world.relay.core.counters.active == readers - 1)
            assert world.relay.core.counters.octets_to_client >= octets
            nursery.cancel_scope.cancel()


async def send_for_ever(stream: trio.socket.SocketType) -> None:
    with contextlib.suppress(OSError):
        while True:
            await stream.send(ZEROS)


def connections_of(world: World) -> list[Connection]:
    return [each for each in world.relay.core.alive if isinstance(each, Connection)]


def pending_in(world: World) -> int:
    return sum(bool(each.client.pending) for each in connections_of(world))


def is_still(world: World) -> bool:
    """Whether no connection has moved data for half a second."""
    return all(monotonic() - each.active_at > 0.5 for each in connections_of(world))


def resident() -> int:
    """Resident memory of this process in bytes (proc(5), statm)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
