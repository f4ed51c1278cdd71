"""An outbox and the inbox at the other end of its socket."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from dnsproxy.workers.inbox import receive
from dnsproxy.workers.messages import FROM_WORKER, Drained, Hand, Shown, frame
from dnsproxy.workers.outbox import Outbox

Sockets = tuple[trio.socket.SocketType, trio.socket.SocketType]
LARGE = 1 << 20
"""Octets that no socket buffer takes at once."""


@pytest.fixture
async def sockets() -> AsyncIterator[Sockets]:
    pair = trio.socket.socketpair()
    yield pair
    for one in pair:
        one.close()


@asynccontextmanager
async def running(outbox: Outbox) -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.run)
        yield nursery
        nursery.cancel_scope.cancel()


async def test_frames_arrive_in_their_order_with_their_descriptors(sockets: Sockets) -> None:
    ours, theirs = sockets
    outbox, descriptors = Outbox(ours), deque[int]()
    reading, writing = os.pipe()
    outbox.post(frame(Shown(1)))
    outbox.post(frame(Hand(b"received")), [reading])
    outbox.post(frame(Shown(2)))
    async with running(outbox), aclosing(receive(theirs, FROM_WORKER, descriptors=descriptors)) as messages:
        assert [await anext(messages) for _ in range(3)] == [Shown(1), Hand(b"received"), Shown(2)]
    os.write(writing, b"through the pipe")
    (descriptor,) = descriptors
    assert os.read(descriptor, 100) == b"through the pipe"
    for one in (reading, writing, descriptor):
        os.close(one)


async def test_a_descriptor_is_closed_at_the_other_end_that_takes_none(sockets: Sockets) -> None:
    ours, theirs = sockets
    outbox = Outbox(ours)
    reading, writing = os.pipe()
    outbox.post(frame(Hand(b"")), [writing])
    async with running(outbox), aclosing(receive(theirs, FROM_WORKER)) as messages:
        assert await anext(messages) == Hand(b"")
    os.close(writing)
    assert os.read(reading, 1) == b"", "no other process has the writing end"
    os.close(reading)


async def test_sending_waits_for_its_own_frame_and_not_for_later_ones(sockets: Sockets) -> None:
    ours, theirs = sockets
    outbox, left = Outbox(ours), list[str]()

    async def send(name: str, octets: bytes) -> None:
        await outbox.send(octets)
        left.append(name)

    async with running(outbox) as nursery:
        nursery.start_soon(send, "small", frame(Shown(1)))
        await wait_all_tasks_blocked()
        assert left == ["small"]
        nursery.start_soon(send, "large", frame(Hand(b"x" * LARGE)))
        await wait_all_tasks_blocked()
        assert left == ["small"], "the socket is full"
        async with aclosing(receive(theirs, FROM_WORKER)) as messages:
            assert [await anext(messages) for _ in range(2)] == [Shown(1), Hand(b"x" * LARGE)]
        await wait_all_tasks_blocked()
        assert left == ["small", "large"]


async def test_every_writer_of_frames_that_leave_in_one_call_is_released(sockets: Sockets) -> None:
    ours, _ = sockets
    outbox = Outbox(ours)
    async with trio.open_nursery() as writers:
        for version in range(5):
            writers.start_soon(outbox.send, frame(Shown(version)))
        await wait_all_tasks_blocked()
        async with running(outbox):
            await outbox.send(frame(Drained()))


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "closed with unread octets"])
async def test_the_inbox_ends_with_the_other_end(sockets: Sockets, reset: bool) -> None:
    ours, theirs = sockets
    await ours.send(frame(Shown(1)) + frame(Shown(2))[:-1])
    if reset:
        await theirs.send(b"unread")
    ours.close()
    found = [message async for message in receive(theirs, FROM_WORKER)]
    assert found in ([Shown(1)], []) if reset else found == [Shown(1)], "the frame that was cut short is none"


async def test_an_outbox_ends_with_its_reader(sockets: Sockets) -> None:
    ours, theirs = sockets
    theirs.shutdown(socket.SHUT_RDWR)
    theirs.close()
    outbox = Outbox(ours)
    outbox.post(frame(Shown(1)))
    await outbox.run()
    await outbox.wait_sent()
