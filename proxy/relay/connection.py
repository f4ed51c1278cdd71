"""One relayed connection: a client and its backend.

The law: nothing here waits. Events of the two sides and the deadline drive a connection, and each does everything that
does not block. copying.py moves the bytes; ends.py passes on FIN and RST and keeps the timers.
"""

from __future__ import annotations

import select
import socket
from typing import Final

from proxy.relay.ends import Ends
from proxy.relay.side import Side
from sidecar.loop.poller import BROKEN, READABLE, WRITABLE

_UNSURE: Final = select.EPOLLERR | select.EPOLLPRI
"""With these, the end may be RST, or more data than a short read returns may precede it."""
_ONLY_MORE: Final = frozenset({select.EPOLLIN, select.EPOLLIN | WRITABLE})
"""Data, and no end after it."""
_INCOMING: Final = READABLE | BROKEN
_ENDING: Final = select.EPOLLRDHUP | BROKEN
_HIDDEN: Final = _ENDING | select.EPOLLPRI
"""A short read may leave data behind: an end is announced once, and urgent data cuts a read short (tcp(7))."""


class Connection(Ends):
    """A client and its backend, both connected."""

    __slots__ = ()

    def handle(self, side: Side, events: int) -> None:
        """Handle an epoll event mask of one side."""
        if self.whole and events in _ONLY_MORE and not side.peer.pending and not side.bulk:
            side.readable = True
            # Take the slower path only after more than a small message.
            if self._move(side, side.peer) is not None and (side.readable or side.end is not None):
                self.pump(side)
        elif self.lingering is not None:
            side.broken |= bool(events & BROKEN)
            self._settle()
        else:
            self._handle_any(side, events)

    def _handle_any(self, side: Side, events: int) -> None:
        if events & _INCOMING:
            side.readable = True
            if events & _HIDDEN:
                side.thorough = True
                if events & select.EPOLLPRI:
                    side.note_urgent()
            if events & _ENDING:
                self.whole = False
                side.ending = not events & _UNSURE and self.born != self.core.poller.turn
                # The event may be meant for an earlier socket with this number, so read the error of this one.
                if events & select.EPOLLERR and side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._note_reset(side)
            self.pump(side)
        if events & WRITABLE and side.pending and not self.closed:
            self.pump(side.peer)
