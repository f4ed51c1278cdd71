"""One descriptor that stands for many sockets, waited for by one trio task and drained by hand.

Waking a trio task costs ten times a system call, so programs that move many small messages over many sockets must not
pay it per socket and message. Here the sockets are registered once, edge-triggered, in an epoll instance of their own;
that instance is itself readable when any of them has news (epoll(7)), and trio waits for it alone.

The law: this module knows descriptors, events and handlers. It reads and writes no socket. A handler must drain its
socket until EAGAIN, must not block, and must not raise for what a peer can cause: an exception ends the loop.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final

import trio

READABLE: Final = select.EPOLLIN | select.EPOLLRDHUP
WRITABLE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

BATCH: Final = 256
"""Handlers called in one go: enough that a busy moment is one call; few enough that other tasks get their turn soon."""

Handler = Callable[[int], None]
"""Called with the event mask of one descriptor."""


class Poller:
    """Watches descriptors and calls their handlers; a context manager that owns its epoll instance."""

    def __init__(self, *, batch: int = BATCH) -> None:
        self._batch = batch
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}

    def __enter__(self) -> Poller:
        return self

    def __exit__(self, *_: object) -> None:
        self._handlers.clear()
        self._epoll.close()

    def add(self, descriptor: int, handler: Handler, *, writable: bool = False, edge: bool = True) -> None:
        """Watch a descriptor; what is ready already is reported too.

        Level-triggered (edge=False), a handler may leave octets for its next turn: for a socket that rarely holds more
        than one datagram, that saves the read which finds nothing.
        """
        events = READABLE | (WRITABLE if writable else 0) | (select.EPOLLET if edge else 0)
        self._epoll.register(descriptor, events)
        self._handlers[descriptor] = handler

    def remove(self, descriptor: int) -> None:
        """Stop watching. Call it before the socket is closed, or a later socket with its number gets its events."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def __len__(self) -> int:
        return len(self._handlers)

    async def run(self, *, after: Callable[[], None] | None = None) -> None:
        """Wait and dispatch until cancelled; `after` is called behind each batch, for what handlers left undone."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            self.dispatch()
            if after is not None:
                after()

    def dispatch(self) -> None:
        """Call the handler of each descriptor that is ready now, at most one batch of them."""
        handlers = self._handlers
        for descriptor, events in self._epoll.poll(0, self._batch):
            # An earlier handler of this batch may have removed it.
            handler = handlers.get(descriptor)
            if handler is not None:
                handler(events)
