"""One relayed connection: its events, its deadline, and the end of each direction.

The law: nothing here waits. A connection is moved on by events of its sides and by its deadline, and does all that can
be done without blocking; the octets themselves are proxy.relay.copying's.

How an end is passed on: the FIN of one side becomes a FIN to the other when all before it has been sent, and the other
direction goes on. A reset becomes a reset, also after all before it has been delivered: a clean end in its place would
make a torn body look whole.
"""

from __future__ import annotations

import select
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.relay.copying import BytePath
from proxy.relay.side import NOBODY, End, Side
from sidecar.deadlines import NOWHERE
from sidecar.poller import BROKEN, READABLE, WRITABLE

if TYPE_CHECKING:
    from proxy.relay.relay import Relay

RESET_GRACE: Final = 1.0
"""Seconds for a backend to take what its client sent before the client reset: it may never read, and the reset matters
more to it. A client has the half-close timeout for each step, for what the backend sent may be the whole answer."""

LOOK_SECONDS: Final = 30.0
"""Between two looks at a connection that lives long, whether both its peers are still there."""

_UNSURE: Final = select.EPOLLERR | select.EPOLLPRI
"""With these the end may be a reset, or behind more than a short read shows."""
_ONLY_MORE: Final = frozenset({select.EPOLLIN, select.EPOLLIN | WRITABLE})
"""Octets, and no end behind them."""
_INCOMING: Final = READABLE | BROKEN
_ENDING: Final = select.EPOLLRDHUP | BROKEN
_HIDDEN: Final = _ENDING | select.EPOLLPRI
"""There may be more than a short read shows: an end is announced once, and urgent data cuts a read short (tcp(7))."""


class Connection(BytePath):
    """A client and its backend, both connected."""

    __slots__ = (
        "born",
        "closed",
        "cut_at",
        "kept_alive",
        "lingering",
        "slot",
        "unsent",
        "whole",
    )

    def __init__(self, relay: Relay, client: Side, backend: Side, *, nagle: bool) -> None:
        # Not super(), which takes as long as all that it calls; one of these is made for each connection.
        BytePath.__init__(self, relay, client, backend, nagle=nagle)
        client.owner = backend.owner = self
        self.slot = NOWHERE
        self.born = relay.poller.turn
        self.closed = False
        self.kept_alive = False
        self.whole = True
        """No side has ended or is gone."""
        self.cut_at = 0.0
        """When to stop delivering what the client sent before it was reset; 0 while it was not."""
        self.lingering: Side | None = None
        """The side that is reset as soon as it has everything; the other one is gone."""
        self.unsent = 0
        """What the lingering side had not acknowledged when it was last looked at."""

    def handle(self, side: Side, events: int) -> None:
        """Take in an event mask of epoll for one side."""
        if self.whole and events in _ONLY_MORE and not side.peer.pending and not side.bulk:
            side.readable = True
            # The long way only where it was no small message.
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
                side.urgent |= bool(events & select.EPOLLPRI)
            if events & _ENDING:
                self.whole = False
                side.ending = not events & _UNSURE and self.born != self.relay.poller.turn
                # An event may be of an earlier socket with this number, so an error is asked for.
                if events & select.EPOLLERR and side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._note_reset(side)
            self.pump(side)
        if events & WRITABLE and side.pending and not self.closed:
            self.pump(side.peer)

    def _note_reset(self, side: Side) -> None:
        if side.broken:
            return
        side.broken = True
        self.whole = False
        self.drop_pending(side)
        if side is self.client:
            self.cut_at = monotonic() + RESET_GRACE
        self.relay.wheel.hasten(self, self._deadline())

    def _note_broken(self, sink: Side) -> None:
        """A send failed: the sink was reset. What it sent before that is still to be had."""
        self._note_reset(sink)
        sink.readable = sink.thorough = True
        self.pump(sink)

    def _pass_on_end(self, source: Side) -> None:
        sink = source.peer
        self.whole = False
        if source.end is End.RESET:
            source.release(self.relay.poller, reset=True)
            self.lingering = sink
            self._settle()
            return
        if source.finished:
            # The other direction is through already; closing sends this one's FIN.
            self.close(reset=False)
        elif not sink.finished:
            sink.finished = True
            try:
                sink.sock.shutdown(socket.SHUT_WR)
            except OSError:
                self._note_broken(sink)
                return
            # Before the first look at it there is no deadline further away.
            if self.kept_alive:
                self.relay.wheel.hasten(self, self._deadline())

    def _settle(self) -> None:
        # A reset purges what the kernel has not sent yet, so it has to wait for the acknowledgement of the last octet.
        side = self.lingering
        unsent = 0 if side is None or side.broken else side.unsent()
        now = monotonic()
        if unsent != self.unsent:
            self.unsent = unsent
            self.active_at = now
        if not unsent or now >= self._deadline():
            self.close(reset=True)
        else:
            self.relay.wheel.schedule(self, now)

    def on_due(self, now: float) -> None:
        """The deadline that was set has come; it may have moved since."""
        if self.lingering is not None:
            self._settle()
            return
        if not self.kept_alive:
            # Not at the start: most connections never live to need it.
            self.kept_alive = True
            for side in (self.client, self.backend):
                side.keep_alive()
        deadline = self._deadline()
        if now >= deadline or self.client.is_gone() or self.backend.is_gone():
            # FIN would say that all is well.
            self.close(reset=True)
        else:
            self.relay.wheel.schedule(self, min(deadline, now + LOOK_SECONDS))

    def _deadline(self) -> float:
        settings = self.relay.settings
        ends = self.client.end or self.backend.end or self.client.broken or self.backend.broken
        quiet = self.active_at + (settings.half_close_timeout if ends else settings.idle_timeout)
        return min(quiet, self.cut_at) if self.cut_at else quiet

    def close(self, *, reset: bool) -> None:
        """Close both sides, with a reset if asked so. A second call does nothing."""
        if self.closed:
            return
        self.closed = True
        relay = self.relay
        for side in (self.client, self.backend):
            if side.pending:
                self.drop_pending(side)
            side.release(relay.poller, reset=reset)
            # They refer to one another: without this they would wait for a search for garbage, and cause many.
            side.owner = NOBODY
            del side.peer
        relay.forget(self)
