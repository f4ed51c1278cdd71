"""How a connection ends: FIN, RST, the idle timer and the half-close timer.

The law: each end is passed on as what it was, after all data before it. The FIN of one side becomes a FIN to the other
side when everything before it has been sent, and the other direction continues. RST becomes RST, also after the data
before it has been delivered: with FIN in its place, a truncated body would look complete. For the same reason, the
half-close timer and the end of the relay close with RST. Where nothing has moved for the whole idle time, nothing is
cut short: both sides get FIN, and RST only if they do not end then. Tested in test_ends.py and test_silence.py.
"""

from __future__ import annotations

import socket
from abc import abstractmethod
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.relay.copying import BytePath
from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.side import NO_OWNER, End, Side
from proxy.tap.ended import Ending, Outcome
from sidecar.loop.timing_wheel import NOWHERE

if TYPE_CHECKING:
    from proxy.relay.core import Core

RESET_GRACE: Final = 1.0
"""Seconds for a backend to accept what its client sent before the client's RST: the backend may never read, and needs
the RST more than the data. A client gets the half-close timeout for each step, because the data may be a whole
answer."""

LOOK_SECONDS: Final = 30.0
"""Between two checks whether the peers of a long-lived connection still exist."""

Ended = tuple[Ending, str]
"""How, and for a connection without a backend the cause. Made once: many connections are reset."""
_CLOSED: Final[Ended] = (Ending.CLOSED, "")
_CLIENT_RESET: Final[Ended] = (Ending.CLIENT_RESET, "")
_BACKEND_RESET: Final[Ended] = (Ending.BACKEND_RESET, "")
_IDLE: Final[Ended] = (Ending.IDLE, "")
_HALF_CLOSED: Final[Ended] = (Ending.HALF_CLOSED, "")
_PEER_LOST: Final[Ended] = (Ending.PEER_LOST, "")
_FAILED: Final[Ended] = (Ending.FAILED, "")


class Ends(BytePath):
    """Both directions of a connection, their ends and their timers; the subclass handles events."""

    __slots__ = (
        "born",
        "closed",
        "cut_at",
        "ended",
        "idle_limit",
        "kept_alive",
        "lingering",
        "slot",
        "unsent",
        "whole",
    )

    def __init__(self, core: Core, client: Side, backend: Side, *, nagle: bool, idle_limit: float) -> None:
        # Not super(), which takes as long as all that it calls: this runs once per connection.
        BytePath.__init__(self, core, client, backend, nagle=nagle)
        client.owner = backend.owner = self
        self.slot = NOWHERE
        self.born = core.poller.turn
        self.closed = False
        self.ended: Ended | None = None
        """The first cause of the end; None if both sides finish."""
        self.idle_limit = idle_limit
        """Seconds without data; infinite: no limit."""
        self.kept_alive = False
        self.whole = True
        """Neither side has ended or is gone."""
        self.cut_at = 0.0
        """When to stop delivering what the client sent before its RST; 0 without RST."""
        self.lingering: Side | None = None
        """The side that gets RST when it has received everything; the other side is gone."""
        self.unsent = 0
        """Bytes that both sides, or the lingering one, had not acknowledged at the last check."""

    @abstractmethod
    def handle(self, side: Side, events: int) -> None:
        """Handle an epoll event mask of one side."""

    def _note_reset(self, side: Side) -> None:
        if side.broken:
            return
        side.broken = True
        self.whole = False
        if self.ended is None:
            self.ended = _CLIENT_RESET if side is self.client else _BACKEND_RESET
        self.drop_pending(side)
        if side is self.client:
            self.cut_at = monotonic() + RESET_GRACE
        self.core.wheel.hasten(self, self._deadline())

    def _note_broken(self, sink: Side) -> None:
        """A send failed: the sink has sent RST. What it sent before can still be read."""
        self._note_reset(sink)
        sink.readable = sink.thorough = True
        self.pump(sink)

    def _pass_on_end(self, source: Side) -> None:
        sink = source.peer
        self.whole = False
        if source.end is End.RESET:
            source.release(self.core.poller, reset=True)
            self.lingering = sink
            self._settle()
            return
        if source.finished:
            # The other direction has ended already; close() sends the FIN of this one.
            self.close(reset=False)
        elif not sink.finished:
            sink.finished = True
            try:
                sink.sock.shutdown(socket.SHUT_WR)
            except OSError:
                self._note_broken(sink)
                return
            # Before the first check, no deadline is further away.
            if self.kept_alive:
                self.core.wheel.hasten(self, self._deadline())

    def _settle(self) -> None:
        # RST discards what the kernel has not sent, so it has to wait for the ACK of the last byte.
        side = self.lingering
        unsent = 0 if side is None or side.broken else side.unsent()
        now = monotonic()
        if unsent != self.unsent:
            self.unsent = unsent
            self.active_at = now
        if not unsent or now >= self._deadline():
            self.close(reset=True)
        else:
            self.core.wheel.schedule(self, now)

    def on_due(self, now: float) -> None:
        """Handle a scheduled deadline, which may have moved since."""
        if self.lingering is not None:
            self._settle()
            return
        if not self.kept_alive:
            # Not at the start: most connections end before they need it.
            self.kept_alive = True
            for side in (self.client, self.backend):
                side.keep_alive()
        self._note_acknowledged(now)
        deadline = self._deadline()
        lost = self.client.is_gone() or self.backend.is_gone()
        if now >= deadline and not lost and not self._has_end():
            self._end_idle(now)
        elif now >= deadline or lost:
            if self.ended is None:
                self.ended = _PEER_LOST if lost else _HALF_CLOSED
            # FIN would signal a complete stream.
            self.close(reset=True)
        else:
            self.core.wheel.schedule(self, min(deadline, now + LOOK_SECONDS))

    def _note_acknowledged(self, now: float) -> None:
        """What a slow reader still takes from the kernel is data that moves: the relay has none left to move."""
        unsent = self.client.unsent() + self.backend.unsent()
        if unsent < self.unsent:
            self.active_at = now
        self.unsent = unsent

    def _end_idle(self, now: float) -> None:
        """FIN to both sides; from here on the half-close timer counts."""
        self.ended = _IDLE
        self.active_at = now
        self.whole = False
        for side in (self.client, self.backend):
            side.finished = True
            with suppress(OSError):
                side.sock.shutdown(socket.SHUT_WR)
        self.core.wheel.schedule(self, self._deadline())

    def _deadline(self) -> float:
        settings = self.core.settings
        quiet = self.active_at + (settings.half_close_timeout if self._has_end() else self.idle_limit)
        return min(quiet, self.cut_at) if self.cut_at else quiet

    def _has_end(self) -> bool:
        client, backend = self.client, self.backend
        return self.ended is not None or bool(client.end or backend.end or client.broken or backend.broken)

    def outcome(self) -> Outcome:
        """How the connection has ended, and what it has moved."""
        ending, cause = self.ended or _CLOSED
        if isinstance(self.client.sock, HeaderlessSocket) and self.client.sock.refused:
            ending = Ending.HEADER
        return Outcome(ending, cause, self.backend.address, self.client.moved, self.backend.moved)

    def close(self, *, reset: bool) -> None:
        """Close both sides, with RST if `reset`. A second call does nothing."""
        if self.closed:
            return
        self.closed = True
        if reset and self.ended is None:
            self.ended = _FAILED
        core = self.core
        for side in (self.client, self.backend):
            if side.pending:
                self.drop_pending(side)
            side.release(core.poller, reset=reset)
            # Break the reference cycle: otherwise the sides would stay until a garbage collection, and cause many.
            side.owner = NO_OWNER
            del side.peer
        core.forget(self)
