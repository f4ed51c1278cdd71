"""An outbox: frames for one process, sent in order by a task of their own, so that a slow reader delays no writer.

The law: posting never waits. The queue is bounded by the life of its reader: a worker that reads nothing for seconds is
killed (see pool.py), and its outbox goes with it. Writers to the parent, which nothing kills, wait with send().
"""

from __future__ import annotations

import array
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import trio

_JOINED: Final = 1 << 16
"""Octets that leave in one call."""


def _nothing() -> None:
    """For a frame whose writer does not wait for it."""


class Outbox:
    """The frames for the other end of a stream socket."""

    def __init__(self, sock: trio.socket.SocketType) -> None:
        self._socket = sock
        self._queue: deque[tuple[bytes, Sequence[int], Callable[[], None]]] = deque()
        self._posted = trio.Event()
        self._ended = False
        self._sent = trio.Event()
        self._sent.set()
        """Unset while something is queued for a reader that lives."""

    def post(self, octets: bytes, descriptors: Sequence[int] = (), *, sent: Callable[[], None] = _nothing) -> None:
        """Queue a frame, with descriptors that are open until `sent` is called, when the frame has left."""
        self._queue.append((octets, descriptors, sent))
        self._posted.set()
        if self._sent.is_set() and not self._ended:
            self._sent = trio.Event()

    async def send(self, octets: bytes, descriptors: Sequence[int] = ()) -> None:
        """Queue a frame and wait until it has left. Does not return after the other end was closed."""
        left = trio.Event()
        self.post(octets, descriptors, sent=left.set)
        await left.wait()

    async def run(self) -> None:
        """Send until the other end is closed, or until cancelled."""
        try:
            while True:
                await self._posted.wait()
                self._posted = trio.Event()
                while self._queue:
                    await self._send_next()
                self._sent.set()
        except (ConnectionError, trio.ClosedResourceError):
            # The reader of the same socket handles the end.
            return
        finally:
            self._ended = True
            self._sent.set()

    async def wait_sent(self) -> None:
        """Wait until nothing is queued: what the kernel holds for the reader is a fraction of a second's work."""
        await self._sent.wait()

    async def _send_next(self) -> None:
        octets, descriptors, sent = self._queue.popleft()
        after = [sent]
        if descriptors:
            # They go with the first octet.
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            rest = memoryview(octets)
            rest = rest[await self._socket.sendmsg([rest], ancillary) :]
        else:
            joined = bytearray(octets)
            while self._queue and len(joined) < _JOINED and not self._queue[0][1]:
                octets, _, sent = self._queue.popleft()
                joined += octets
                after.append(sent)
            rest = memoryview(joined)
        while rest:
            rest = rest[await self._socket.send(rest) :]
        for each in after:
            each()
