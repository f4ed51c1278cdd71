"""The way of octets from one side of a connection to the other.

The law: nothing here waits. At most one buffer or one pipe per direction is held: where a receiver is slow, the sender
is not read. Octets pass through the buffer until a read has filled it; then through a pipe (splice.py), until there
is less than a buffer at once.

What most connections are about, a small message that is there at once and goes at once, is one read and one send here
and nothing else; whatever is not that, takes the long way through `pump`.
"""

from __future__ import annotations

from abc import abstractmethod
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.relay.first_payload import send_at_once
from proxy.relay.side import BULK, End, Side
from proxy.relay.splice import UNSUPPORTED, Pipe

if TYPE_CHECKING:
    from proxy.relay.relay import Relay

BUFFER: Final = 65_536
"""Octets that are read at once, and so the most that is held per direction outside the kernel."""

# Octets that one direction may move before the other connections get their turn.
_TURN: Final = 2_097_152


class BytePath:
    """Both directions of a connection; what the ends mean is left to who inherits this."""

    __slots__ = ("active_at", "backend", "client", "nagle", "relay")

    def __init__(self, relay: Relay, client: Side, backend: Side, *, nagle: bool) -> None:
        self.relay = relay
        self.client = client
        self.backend = backend
        client.peer, backend.peer = backend, client
        self.nagle = nagle
        """The backend's socket holds back what is less than a segment while something is not acknowledged (RFC 9293
        section 3.7.4). That does not matter to the first words; most clients never say more, and cost a call less."""
        self.active_at = monotonic()

    @abstractmethod
    def _note_reset(self, side: Side) -> None:
        """A side has reset."""

    @abstractmethod
    def _note_broken(self, sink: Side) -> None:
        """A send to a side failed."""

    @abstractmethod
    def _pass_on_end(self, source: Side) -> None:
        """A side has an end, and all that it sent before has been sent on."""

    @abstractmethod
    def close(self, *, reset: bool) -> None:
        """End both sides."""

    def pump(self, source: Side) -> None:
        """Move what one side sent to the other, until there is no more or no room, and then its end."""
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
            moved = self._splice(source, sink) if source.bulk and not source.urgent else self._move(source, sink)
            if moved is None:
                return
            left -= moved
        # Watched anew, a descriptor is reported anew if it is ready.
        self.relay.poller.modify(source.fd, writable=source.room_watched)

    def _move(self, source: Side, sink: Side) -> int | None:
        """Read once and send it on: how many octets, or None where there is nothing more to do now."""
        relay = self.relay
        try:
            count = source.sock.recv_into(relay.buffer)
        except BlockingIOError:
            # After an end there would be something to read: if one was announced, it was an earlier socket's.
            source.readable = source.ending = False
            return None
        except OSError:
            return self._reset_by(source)
        if not count:
            # A failed send may have taken the error that this read would have shown.
            source.end = End.RESET if source.broken else End.FIN
            return 0
        # A short read has mostly emptied the socket (epoll(7)), and what comes later raises a new event.
        if count == BUFFER:
            source.readable = True
            source.bulk = BULK
        else:
            source.readable = source.thorough
            if source.ending:
                source.end = End.RESET if source.broken else End.FIN
        # As _count, without the call.
        self.active_at = monotonic()
        if source is self.client:
            relay.counters.octets_to_backend += count
            if self.nagle:
                self._end_nagle()
        else:
            relay.counters.octets_to_client += count
        try:
            sent = sink.sock.send(relay.view[:count])
        except BlockingIOError:
            sent = 0
        except OSError:
            self._note_broken(sink)
            return None
        if sent == count:
            return count
        sink.pending = bytes(relay.view[sent:count])
        self._await_room(sink)
        return None

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
            # An end, or urgent data, at which splice stops and a read does not.
            return self._move(source, sink)
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
        return self._reset_by(source)

    def _reset_by(self, source: Side) -> int:
        self._note_reset(source)
        source.end = End.RESET
        return 0

    def _flush(self, sink: Side) -> bool:
        """Send what is pending; whether all of it went."""
        pending = sink.pending
        try:
            if isinstance(pending, Pipe):
                pending.drain(sink.fd)
            else:
                sink.pending = pending[sink.sock.send(pending) :]
        except BlockingIOError:
            self._await_room(sink)
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
            self._await_room(sink)
            return False
        self.drop_pending(sink)
        return True

    def _await_room(self, sink: Side) -> None:
        """Most sockets never lack room, so they are watched for it from the first time that one does."""
        if not sink.room_watched:
            sink.room_watched = True
            self.relay.poller.modify(sink.fd, writable=True)

    def _take_back(self, sink: Side, pipe: Pipe) -> None:
        octets = pipe.take_back()
        self.drop_pending(sink)
        sink.pending = octets

    def drop_pending(self, side: Side) -> None:
        """Forget what was to be sent to a side, and let the next direction have its pipe."""
        if isinstance(side.pending, Pipe):
            self.relay.pipes.give_back(side.pending)
        side.pending = b""

    def _end_nagle(self) -> None:
        self.nagle = False
        send_at_once(self.backend.sock)

    def _count(self, source: Side, count: int) -> None:
        self.active_at = monotonic()
        if source is self.client:
            self.relay.counters.octets_to_backend += count
            if self.nagle:
                self._end_nagle()
        else:
            self.relay.counters.octets_to_client += count
