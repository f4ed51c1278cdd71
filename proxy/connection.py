"""One relayed connection: what is on its way between its two sides, and the end of each direction.

The law: nothing here waits. A connection is moved on by events of its sides and by its deadline, and does all that can
be done without blocking. At most one buffer or one pipe per direction is held: where a receiver is slow, the sender is
not read. Octets pass through the buffer until a read has filled it; then through a pipe (proxy.splice), until there is
less than a buffer at once.

How an end is passed on: the FIN of one side becomes a FIN to the other when all before it has been sent, and the other
direction goes on. A reset becomes a reset, also after all before it has been delivered: a clean end in its place would
make a torn body look whole.
"""

from __future__ import annotations

import select
import socket
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.side import BULK, End, Side
from proxy.splice import UNSUPPORTED, Pipe
from proxy.wheel import NOWHERE
from sidecar.poller import BROKEN, READABLE, WRITABLE

if TYPE_CHECKING:
    from proxy.relay import Relay

BUFFER: Final = 65_536
"""Octets that are read at once, and so the most that is held per direction outside the kernel."""

RESET_GRACE: Final = 1.0
"""Seconds for a backend to take what its client sent before the client reset: it may never read, and the reset matters
more to it. A client has the half-close timeout for each step, for what the backend sent may be the whole answer."""

# Octets that one direction may move before the other connections get their turn.
_TURN: Final = 2_097_152
_INCOMING: Final = READABLE | BROKEN
_ENDING: Final = select.EPOLLRDHUP | BROKEN


class Connection:
    """A client and its backend, both connected."""

    __slots__ = (
        "active_at",
        "backend",
        "client",
        "closed",
        "cut_at",
        "kept_alive",
        "lingering",
        "relay",
        "slot",
        "unsent",
    )

    def __init__(self, relay: Relay, client: Side, backend: Side) -> None:
        self.relay = relay
        self.client = client
        self.backend = backend
        client.owner = backend.owner = self
        client.peer, backend.peer = backend, client
        self.slot = NOWHERE
        self.closed = False
        self.kept_alive = False
        self.active_at = monotonic()
        self.cut_at = 0.0
        """When to stop delivering what the client sent before it was reset; 0 while it was not."""
        self.lingering: Side | None = None
        """The side that is reset as soon as it has everything; the other one is gone."""
        self.unsent = 0
        """What the lingering side had not acknowledged when it was last looked at."""

    def handle(self, side: Side, events: int) -> None:
        """Take in an event mask of epoll for one side."""
        if self.lingering is not None:
            side.broken |= bool(events & BROKEN)
            self._settle()
            return
        if events & _INCOMING:
            side.readable = True
            if events & _ENDING:
                side.hup = True
                # An event may be of an earlier socket with this number, so an error is asked for.
                if events & select.EPOLLERR and side.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._note_reset(side)
            self.pump(side)
        if events & WRITABLE and side.pending and not self.closed:
            self.pump(side.peer)

    def pump(self, source: Side) -> None:
        """Move what one side sent to the other, until there is no more or no room."""
        sink = source.peer
        if sink.broken:
            if source.broken:
                self.close(reset=True)
            return
        left = _TURN
        while left > 0:
            if sink.pending and not self._flush(sink):
                return
            if source.end is not None:
                self._pass_on_end(source)
                return
            if not source.readable:
                return
            moved = self._splice(source, sink) if source.bulk else self._move(source, sink)
            if moved is None:
                return
            left -= moved
        self._yield_turn(source)

    def _move(self, source: Side, sink: Side) -> int | None:
        """Read once and send it on: how many octets, or None where there is nothing more to do now."""
        relay = self.relay
        try:
            count = source.sock.recv_into(relay.buffer)
        except BlockingIOError:
            source.readable = False
            return None
        except OSError:
            return self._note_end(source, End.RESET)
        if not count:
            return self._note_end(source, End.FIN)
        # A short read has emptied the socket (epoll(7)); what comes later raises a new event, an end that was already
        # announced does not.
        full = count == BUFFER
        source.readable = full or source.hup
        if full:
            source.bulk = BULK
        self._count(source, count)
        return count if self._send(sink, relay.view[:count]) else None

    def _splice(self, source: Side, sink: Side) -> int | None:
        """As _move, through a pipe."""
        pipes = self.relay.pipes
        pipe = pipes.take()
        if pipe is None:
            return self._move(source, sink)
        try:
            count = pipe.fill(source.fd)
        except OSError as error:
            pipes.give_back(pipe)
            return self._splice_failed(source, error)
        if not count:
            pipes.give_back(pipe)
            return self._note_end(source, End.FIN)
        source.bulk = BULK if count >= BUFFER else source.bulk - 1
        self._count(source, count)
        sink.pending = pipe
        return count if self._flush(sink) else None

    def _splice_failed(self, source: Side, error: OSError) -> int | None:
        """Nothing came through a pipe: because there is nothing, or because there are no pipes, or it is an end."""
        if isinstance(error, BlockingIOError):
            source.readable = False
            return None
        if error.errno in UNSUPPORTED:
            self.relay.pipes.switch_off(error)
            source.bulk = 0
            return 0
        return self._note_end(source, End.RESET)

    def _note_end(self, source: Side, end: End) -> int:
        if end is End.RESET:
            self._note_reset(source)
        # A failed send may have taken the error that this read would have shown.
        source.end = End.RESET if source.broken else end
        return 0

    def _send(self, sink: Side, octets: memoryview) -> bool:
        try:
            sent = sink.sock.send(octets)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._note_broken(sink)
            return False
        if sent == len(octets):
            return True
        sink.pending = bytes(octets[sent:])
        return False

    def _flush(self, sink: Side) -> bool:
        """Send what is pending; whether all of it went."""
        pending = sink.pending
        try:
            if isinstance(pending, bytes):
                sink.pending = pending[sink.sock.send(pending) :]
            else:
                pending.drain(sink.fd)
        except BlockingIOError:
            return False
        except OSError as error:
            if isinstance(pending, Pipe) and error.errno in UNSUPPORTED:
                self._take_back(sink, pending)
                self.relay.pipes.switch_off(error)
                return self._flush(sink)
            self._note_broken(sink)
            return False
        self.active_at = monotonic()
        if sink.pending:
            return False
        if pending is sink.pending:
            self._drop_pending(sink)
        return True

    def _take_back(self, sink: Side, pipe: Pipe) -> None:
        octets = pipe.take_back()
        self._drop_pending(sink)
        sink.pending = octets

    def _drop_pending(self, side: Side) -> None:
        """Forget what was to be sent to a side, and let the next direction have its pipe."""
        if isinstance(side.pending, Pipe):
            self.relay.pipes.give_back(side.pending)
        side.pending = b""

    def _count(self, source: Side, count: int) -> None:
        self.active_at = monotonic()
        if source is self.client:
            self.relay.counters.octets_to_backend += count
        else:
            self.relay.counters.octets_to_client += count

    def _yield_turn(self, source: Side) -> None:
        # Watched anew, a descriptor is reported anew if it is ready.
        self.relay.poller.remove(source.fd)
        self.relay.poller.add(source.fd, source.handle, writable=True)

    def _note_reset(self, side: Side) -> None:
        if side.broken:
            return
        side.broken = True
        self._drop_pending(side)
        if side is self.client:
            self.cut_at = monotonic() + RESET_GRACE
        self.relay.wheel.hasten(self, self._deadline())

    def _note_broken(self, sink: Side) -> None:
        """A send failed: the sink was reset. What it sent before that is still to be had."""
        self._note_reset(sink)
        sink.readable = sink.hup = True
        self.pump(sink)

    def _pass_on_end(self, source: Side) -> None:
        sink = source.peer
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
                side.keep_alive(idle_timeout=self.relay.settings.idle_timeout)
        deadline = self._deadline()
        if now >= deadline:
            # FIN would say that all is well.
            self.close(reset=True)
        else:
            self.relay.wheel.schedule(self, deadline)

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
        self._drop_pending(self.client)
        self._drop_pending(self.backend)
        self.client.release(self.relay.poller, reset=reset)
        self.backend.release(self.relay.poller, reset=reset)
        self.relay.forget(self)
