"""A loop over many sockets: epoll and timers, in one thread.

The law: it knows nothing of DNS; a handler that is called finds its socket ready, or gets BlockingIOError.
"""

from __future__ import annotations

import heapq
import select
import socket
import time
from collections.abc import Callable
from typing import Final, NoReturn

_EVENTS: Final = 256
_LONGEST_WAIT: Final = 60.0

Handler = Callable[[], None]


class Loop:
    """Handlers by socket, and handlers by time."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Handler]] = []
        self._number = 0

    def watch(self, opened: socket.socket, handler: Handler) -> None:
        """Call a handler whenever a socket can be read."""
        self._handlers[opened.fileno()] = handler
        self._epoll.register(opened, select.EPOLLIN)

    def watch_writing(self, opened: socket.socket, handler: Handler) -> None:
        """Call a handler whenever a socket can be written."""
        self._handlers[opened.fileno()] = handler
        self._epoll.register(opened, select.EPOLLOUT)

    def turn_to_reading(self, opened: socket.socket, handler: Handler) -> None:
        """A socket that was watched for writing."""
        self._handlers[opened.fileno()] = handler
        self._epoll.modify(opened, select.EPOLLIN)

    def close(self, opened: socket.socket) -> None:
        """Close a watched socket."""
        del self._handlers[opened.fileno()]
        self._epoll.unregister(opened)
        opened.close()

    def call_later(self, seconds: float, handler: Handler) -> None:
        """Call once, so many seconds from now."""
        self._number += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._number, handler))

    def run(self) -> NoReturn:
        """Until the process ends."""
        while True:
            wait = self._timers[0][0] - time.monotonic() if self._timers else _LONGEST_WAIT
            for descriptor, _ in self._epoll.poll(max(0.0, wait), _EVENTS):
                # An earlier handler of this turn may have closed it.
                if (handler := self._handlers.get(descriptor)) is not None:
                    handler()
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
