"""One connection of DNS over TCP (RFC 7766): pipelined queries, answered out of order, and its end.

The law: a connection uses a bounded number of tasks and octets, and every wait has a deadline next to it. However much
the clients send, all connections together occupy the loop for one slice per turn. A connection is closed with FIN after
all input is read, because a client that reuses connections counts a reset as a failure of the server. Tested in
tests/dnsproxy/server/test_stream_server.py.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from time import perf_counter
from typing import Final, NamedTuple, Protocol

import trio

from dnsproxy.answers.decide import Forward
from dnsproxy.dns import stream_frames
from dnsproxy.server.transfer_frames import next_frames
from dnsproxy.server.zone_service import Elsewhere, Transfer
from sidecar.loop.slices import SLICE

TURNS: Final = 16
"""Connections that work in one turn of the loop; together they occupy it for one slice."""
_CHUNK: Final = 16 << 10
"""Octets received in one call: some hundred queries."""
_LAST_CHUNK: Final = 64 << 10
"""The same for what has arrived when the connection is to end."""
_JOINED: Final = 16 << 10
"""Replies are sent when they have this many octets: a slow client must accept them within limits.send."""


class StreamService(Protocol):
    """Answers the messages of connections."""

    def respond_stream(
        self, message: bytes, *, client: str, port: int
    ) -> bytes | Forward | Transfer | Elsewhere | None:
        """The reply, or the query to forward, or a transfer, or None if the connection must be closed.

        `client` and `port` are the address and port of the client.
        """

    async def hand_over(self, stream: trio.SocketStream, received: bytes) -> None:
        """Give the connection to another process, with what was received and not answered."""

    async def forward_stream(self, forward: Forward, *, client: str, port: int) -> bytes:
        """The reply to a forwarded query, in bounded time."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits of one connection, one client and all clients; seconds and counts."""

    idle: float = 30.0
    """Between the last reply and the next query: CoreDNS reuses a connection for 10 s (RFC 7766 section 6.2.3)."""
    message: float = 10.0
    """For the first octet on a connection, and for a whole message after its first octet."""
    send: float = 5.0
    """For the client to accept replies that leave together."""
    closing: float = 1.0
    """For the client to close too, after our FIN."""
    pipelined: int = 64
    connections: int = 1024
    per_client: int = 256


class _Turn(NamedTuple):
    """The result of a turn."""

    frames: bytes
    """Replies to send."""
    waiting: Forward | Transfer | None = None
    """A query to forward, or a transfer, for which no slot was free."""
    garbage: bool = False
    """Whether it received octets that are not DNS."""
    asked: bytes = b""
    """What another process is to answer."""
    elsewhere: Elsewhere | None = None
    """The way to that answer."""


class StreamConnection:
    """Serves one connection. `turns` is one semaphore of TURNS for all connections: its holders may work.

    `transfers` is another one, of TRANSFERS: its holders have a transfer under way. `received`: octets that another
    process has received.
    """

    def __init__(
        self,
        stream: trio.SocketStream,
        service: StreamService,
        *,
        client: str,
        port: int,
        limits: StreamLimits,
        turns: trio.Semaphore,
        transfers: trio.Semaphore,
        received: bytes = b"",
    ) -> None:
        self._stream = stream
        self._service = service
        self.client = client
        self._port = port
        self._limits = limits
        self._turns = turns
        self._transfers = transfers
        self._received = bytearray(received)
        self._sending = trio.Lock()
        self._slots = trio.Semaphore(limits.pipelined)
        self._idle = trio.CancelScope()
        self._seen_message = False
        self._stopping = False
        self._giving_way = False
        self._looked = False
        """Whether what had arrived before the end was read."""
        self._ended = False
        self._waiting_since: float | None = None
        """Since when it waits for the next message; None while it has work."""

    @property
    def idle_since(self) -> float | None:
        """Since when it has had no work; None if it has a query to answer or is ending."""
        busy = self._slots.value < self._limits.pipelined or self._stopping
        return None if busy else self._waiting_since

    async def run(self) -> None:
        """Serve until the client ends, exceeds a limit or sends octets that are not DNS, or until stopped."""
        async with trio.open_nursery() as nursery:
            while await self._wait_for_message():
                # Acquiring takes a turn of the loop even if it is free: so at most TURNS connections work in one turn.
                async with self._turns:
                    turn = self._take_turn(nursery)
                if turn.frames:
                    await self._send(turn.frames, nursery.cancel_scope)
                if turn.garbage:
                    nursery.cancel_scope.cancel()  # the messages after it cannot be separated either
                    break
                if turn.elsewhere is not None and not await self._ask(turn.asked, turn.elsewhere, nursery.cancel_scope):
                    break
                if turn.waiting is not None:
                    await self._slots.acquire()
                    self._start(turn.waiting, nursery)
        if not nursery.cancel_scope.cancel_called and not self._giving_way:
            await self._finish()

    def stop(self) -> None:
        """Accept no more queries; those that have begun to arrive and the open ones are still answered."""
        self._stopping = True
        self._idle.cancel()

    def give_way(self) -> None:
        """End now, with FIN; its descriptor is needed sooner than its client would close too."""
        self._giving_way = True
        self.stop()

    def _take_turn(self, nursery: trio.Nursery) -> _Turn:
        """Answer whole messages, for a share of a slice; at least one."""
        frames: list[bytes] = []
        size = 0
        end = perf_counter() + SLICE / TURNS
        while size < _JOINED and stream_frames.is_whole(self._received):
            message = stream_frames.take_message(self._received)
            outcome = self._service.respond_stream(message, client=self.client, port=self._port)
            if outcome is None:
                return _Turn(b"".join(frames), garbage=True)
            if isinstance(outcome, bytes):
                frames.append(stream_frames.format_message(outcome))
                size += len(frames[-1])
            elif isinstance(outcome, Elsewhere):
                return _Turn(b"".join(frames), asked=message, elsewhere=outcome)
            elif self._slots.value:
                self._slots.acquire_nowait()
                self._start(outcome, nursery)
            else:
                return _Turn(b"".join(frames), waiting=outcome)
            if perf_counter() >= end:
                break
        return _Turn(b"".join(frames))

    async def _ask(self, message: bytes, elsewhere: Elsewhere, connection: trio.CancelScope) -> bool:
        """Send the answer of another process; False if that process has the connection now.

        Nothing else of the connection is open meanwhile: two processes that write to it would break its frames.
        """
        for _ in range(self._limits.pipelined):
            await self._slots.acquire()
        reply = await elsewhere.answer()
        if reply is None:
            self._giving_way = True  # its end is the other process's matter
            await self._service.hand_over(self._stream, stream_frames.format_message(message) + self._received)
            return False
        for _ in range(self._limits.pipelined):
            self._slots.release()
        await self._send(stream_frames.format_message(reply), connection)
        self._begin_idle()
        return True

    def _start(self, waiting: Forward | Transfer, nursery: trio.Nursery) -> None:
        if isinstance(waiting, Forward):
            nursery.start_soon(self._forward, waiting, nursery.cancel_scope)
        else:
            nursery.start_soon(self._transfer, waiting, nursery.cancel_scope)

    async def _forward(self, forward: Forward, connection: trio.CancelScope) -> None:
        try:
            reply = await self._service.forward_stream(forward, client=self.client, port=self._port)
            await self._send(stream_frames.format_message(reply), connection)
        finally:
            self._slots.release()
        self._begin_idle()

    async def _transfer(self, transfer: Transfer, connection: trio.CancelScope) -> None:
        """Send one message after another, each with the deadline of a reply: a client that reads nothing is cut off."""
        try:
            async with self._transfers, contextlib.aclosing(transfer.messages()) as messages:
                while frames := await next_frames(messages):
                    await self._send(b"".join(frames), connection)
            if not connection.cancel_called:
                transfer.finish()
        finally:
            self._slots.release()
        self._begin_idle()

    def _begin_idle(self) -> None:
        now = trio.current_time()
        self._idle.deadline = now + self._limits.idle
        self._waiting_since = None if self._waiting_since is None else now

    async def _send(self, frames: bytes, connection: trio.CancelScope) -> None:
        """Send whole messages in one write (RFC 7766 section 8); a client that does not accept them is disconnected."""
        with trio.move_on_after(self._limits.send) as scope:
            try:
                await self._send_in_order(frames)
            except trio.BrokenResourceError:
                connection.cancel()
        if scope.cancelled_caught:
            connection.cancel()

    async def _send_in_order(self, frames: bytes) -> None:
        try:
            self._sending.acquire_nowait()  # nearly always; awaiting it would take a turn of the loop
        except trio.WouldBlock:
            await self._sending.acquire()
        try:
            await self._stream.send_all(frames)
        finally:
            self._sending.release()

    async def _wait_for_message(self) -> bool:
        """Whether a whole message has arrived; False if the client has ended or is gone, or after a deadline."""
        received = self._received
        if not received and not self._stopping:
            # Between messages the client has the idle time, and each reply extends it.
            patience = self._limits.idle if self._seen_message else self._limits.message
            self._waiting_since = trio.current_time()
            with trio.CancelScope(deadline=self._waiting_since + patience) as self._idle:
                await self._receive()
            self._waiting_since = None
        if not (received or self._ended or self._looked or self._giving_way) and self._stream.socket.is_readable():
            # It came while the wait ended, or before a connection that is to end was served.
            self._looked = self._stopping
            await self._receive(_LAST_CHUNK)
        if not stream_frames.is_whole(received):
            with trio.move_on_after(self._limits.message):
                while received and not self._ended and not stream_frames.is_whole(received):
                    await self._receive()
        self._seen_message = stream_frames.is_whole(received)
        return self._seen_message

    async def _receive(self, most: int = _CHUNK) -> None:
        try:
            chunk = await self._stream.receive_some(most)
        except trio.BrokenResourceError:
            chunk = b""
        self._ended = self._ended or not chunk
        self._received += chunk

    async def _finish(self) -> None:
        """Send FIN and read the remaining input, so that closing does not become a reset."""
        with trio.move_on_after(self._limits.closing), contextlib.suppress(trio.BrokenResourceError):
            await self._stream.send_eof()
            while await self._stream.receive_some():
                pass
