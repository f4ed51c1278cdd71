"""Moves bytes from one side of a connection to the other.

The law: nothing here waits. Each direction holds at most one buffer or one pipe: if a receiver is slow, its sender is
not read. Bytes go through the buffer until a read fills it, and then through a pipe (splice.py) until little comes at
a time. Tested in test_connection.py, test_splice.py and test_interleavings.py.

Most traffic is small messages, which arrive whole and can be sent at once: such a message costs one read and one send.
Everything else takes the slower path through `pump`.
"""

from __future__ import annotations

import socket
from abc import abstractmethod
from time import monotonic
from typing import Final

from proxy.relay.core import BUFFER, Core
from proxy.relay.side import BULK, End, Side, send_at_once
from proxy.relay.splice import UNSUPPORTED, Pipe

# Bytes that one direction may move before other connections have their turn.
_TURN: Final = 2_097_152

# A flag without its enum, and a member of one: both would cost a look-up per message.
_MORE: Final = int(socket.MSG_MORE)
_FIN: Final = End.FIN


class BytePath:
    """Both directions of a connection; the subclass decides what their ends mean."""

    __slots__ = ("active_at", "backend", "client", "core", "nagle")

    def __init__(self, core: Core, client: Side, backend: Side, *, nagle: bool) -> None:
        self.core = core
        self.client = client
        self.backend = backend
        client.peer, backend.peer = backend, client
        self.nagle = nagle
        """Nagle's algorithm still delays small segments to the backend (RFC 9293 section 3.7.4). It does not delay the
        first segment, and most clients send no more: they save the call that turns it off."""
        self.active_at = monotonic()

    @abstractmethod
    def _note_reset(self, side: Side) -> None:
        """A side has sent RST."""

    @abstractmethod
    def _note_broken(self, sink: Side) -> None:
        """A send to a side has failed."""

    @abstractmethod
    def _pass_on_end(self, source: Side) -> None:
        """A side has ended, and everything it sent has been passed on."""

    @abstractmethod
    def close(self, *, reset: bool) -> None:
        """Close both sides."""

    def pump(self, source: Side) -> None:
        """Move data from one side to the other until there is no more or no room; then pass on its end."""
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
        # modify() makes the poller report a ready descriptor again.
        self.core.poller.modify(source.fd, writable=source.room_watched)

    def _move(self, source: Side, sink: Side) -> int | None:
        """Read once and send: the number of bytes, or None if there is nothing more to do now."""
        core = self.core
        try:
            count = source.sock.recv_into(core.buffer)
        except BlockingIOError:
            # A FIN would be readable: an event that announced one was meant for an earlier socket.
            source.readable = source.ending = False
            return None
        except OSError:
            return self._reset_by(source)
        if not count:
            # A failed send may have consumed the error that this read would have reported.
            source.end = End.RESET if source.broken else End.FIN
            return 0
        # A short read usually has emptied the socket (epoll(7)); later data causes a new event.
        if count == BUFFER:
            source.readable = True
            source.bulk = BULK
        else:
            source.readable = source.thorough
            if source.ending:
                source.end = End.RESET if source.broken else End.FIN
        # The same as _count(), without the cost of its call.
        self.active_at = monotonic()
        source.moved += count
        if source is self.client:
            core.counters.octets_to_backend += count
            if self.nagle:
                self._end_nagle()
        else:
            core.counters.octets_to_client += count
        try:
            # MSG_MORE (send(2)): the FIN that follows at once takes the data along in its segment.
            sent = sink.sock.send(core.view[:count], _MORE if source.end is _FIN else 0)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._note_broken(sink)
            return None
        if sent == count:
            return count
        sink.pending = bytes(core.view[sent:count])
        self._await_room(sink)
        return None

    def _splice(self, source: Side, sink: Side) -> int | None:
        """The same as _move(), through a pipe."""
        pipes = self.core.pipes
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
            # FIN, or urgent data, which stops splice but not a read. Its event may not have come yet.
            source.note_urgent()
            return self._move(source, sink)
        source.bulk = BULK if count >= BUFFER else source.bulk - 1
        self._count(source, count)
        sink.pending = pipe
        return count if self._flush(sink) else None

    def _splice_failed(self, source: Side, error: OSError) -> int | None:
        """Handle an error of splice: no data, no support for splice, or RST."""
        if isinstance(error, BlockingIOError):
            source.readable = False
            return None
        if error.errno in UNSUPPORTED:
            self.core.pipes.switch_off(error)
            source.bulk = 0
            return 0
        return self._reset_by(source)

    def _reset_by(self, source: Side) -> int:
        self._note_reset(source)
        source.end = End.RESET
        return 0

    def _flush(self, sink: Side) -> bool:
        """Send pending data; whether all of it went."""
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
                self.core.pipes.switch_off(error)
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
        """Watch for room from the first time that a send buffer is full; for most sockets that never happens."""
        if not sink.room_watched:
            sink.room_watched = True
            self.core.poller.modify(sink.fd, writable=True)

    def _take_back(self, sink: Side, pipe: Pipe) -> None:
        octets = pipe.take_back()
        self.drop_pending(sink)
        sink.pending = octets

    def drop_pending(self, side: Side) -> None:
        """Discard the data that is pending for a side, and return its pipe."""
        if isinstance(side.pending, Pipe):
            self.core.pipes.give_back(side.pending)
        side.pending = b""

    def _end_nagle(self) -> None:
        self.nagle = False
        send_at_once(self.backend.sock)

    def _count(self, source: Side, count: int) -> None:
        self.active_at = monotonic()
        source.moved += count
        if source is self.client:
            self.core.counters.octets_to_backend += count
            if self.nagle:
                self._end_nagle()
        else:
            self.core.counters.octets_to_client += count
