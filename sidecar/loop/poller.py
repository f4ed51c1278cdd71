"""One descriptor for many sockets: one trio task waits for it, and handlers drain the sockets.

Waking a trio task costs as much as ten system calls, so a program that moves many small messages over many sockets must
not do it for each socket and message. The sockets are registered once, edge-triggered, in an epoll instance of their
own. That instance becomes readable when any socket has an event (epoll(7)), and trio waits for it alone. If events come
in quick succession, even that is too often: then the loop may wait for the next batch itself, for a moment.

The law: this module knows descriptors, events and handlers. It reads and writes no socket. A handler must drain its
socket until EAGAIN, must not block, and must not raise for anything that a peer can cause: an exception ends the loop.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from time import monotonic
from typing import Final, Self

import trio

READABLE: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLPRI
WRITABLE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

_EDGE: Final = READABLE | select.EPOLLET
_EDGE_BOTH: Final = _EDGE | WRITABLE

BATCH: Final = 256
"""Handlers called in one go: enough for a busy moment, few enough that other tasks run soon."""

BUSY_SECONDS: Final = 0.02
"""Seconds that a lingering loop may run before other tasks run."""

Handler = Callable[[int], None]
"""Called with the event mask of one descriptor."""


class Poller:
    """Watches descriptors and calls their handlers; a context manager that owns its epoll instance."""

    def __init__(self, *, batch: int = BATCH) -> None:
        self._batch = batch
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self.turn = 0
        """Batches so far. In the batch in which it was added, a descriptor may get an event of an earlier socket."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._handlers.clear()
        self._epoll.close()

    def add(self, descriptor: int, handler: Handler, *, writable: bool = False, edge: bool = True) -> None:
        """Watch a descriptor; events that are already pending are reported too.

        With edge=False (level-triggered) a handler may leave octets for its next call: for a socket that rarely holds
        more than one datagram, this saves the read that finds nothing.
        """
        events = _EDGE_BOTH if writable else _EDGE
        self._epoll.register(descriptor, events if edge else events & ~select.EPOLLET)
        self._handlers[descriptor] = handler

    def modify(self, descriptor: int, *, writable: bool = True) -> None:
        """Watch edge-triggered, with or without room to write; pending events are reported again.

        Does nothing for a descriptor that is not watched.
        """
        if descriptor in self._handlers:
            self._epoll.modify(descriptor, _EDGE_BOTH if writable else _EDGE)

    def remove(self, descriptor: int) -> None:
        """Stop watching. Call it before the socket is closed, or a later socket with its number gets its events."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def forget(self, descriptor: int) -> None:
        """As remove, for a descriptor that is closed at once: the kernel then stops by itself, which saves a call.

        A later socket with its number may get one event of it if both are in one batch.
        """
        self._handlers.pop(descriptor, None)

    def __len__(self) -> int:
        return len(self._handlers)

    async def run(self, *, after: Callable[[], None] | None = None, linger: float = 0.0) -> None:
        """Wait and dispatch until cancelled; `after` is called after each batch, for work that handlers postponed.

        With `linger`, in seconds, the thread waits that long for the next batch before it returns to trio; other tasks
        then run every BUSY_SECONDS at the latest.
        """
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            until = monotonic() + BUSY_SECONDS if linger else 0.0
            timeout = 0.0
            while self.dispatch(timeout):
                if after is not None:
                    after()
                if monotonic() >= until:
                    break
                timeout = linger

    def dispatch(self, timeout: float = 0.0) -> int:
        """Call the handler of each ready descriptor, at most one batch; returns how many were ready.

        Waits at most `timeout` seconds for the first, and blocks the thread while it waits.
        """
        handlers = self._handlers
        self.turn += 1
        ready = self._epoll.poll(timeout, self._batch)
        for descriptor, events in ready:
            # An earlier handler of this batch may have removed it.
            handler = handlers.get(descriptor)
            if handler is not None:
                handler(events)
            else:
                self._handle_unknown(descriptor)
        return len(ready)

    def _handle_unknown(self, descriptor: int) -> None:
        """A descriptor without a handler is ready."""
