"""One connection of DNS over TCP (RFC 7766): pipelined queries, answered out of order, and its end.

The law: it costs a bounded number of tasks and octets, waits are bounded by a deadline beside each, and however much a
client sends at once, all connections together keep the loop for one slice a turn. It is closed with FIN, all input
read, because a client that reuses connections counts a reset as our failure.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from time import perf_counter
from typing import Final, NamedTuple, Protocol

import trio

from dnsproxy.answers.decide import Forward
from dnsproxy.dns import stream_frames
from sidecar.loop.slices import SLICE

TURNS: Final = 16
"""Connections that work in one turn of the loop; together they keep it for a slice."""
_CHUNK: Final = 16 << 10
"""Octets received at a time: some hundred queries."""
_JOINED: Final = 16 << 10
"""Octets of replies after which they are sent: a client that reads slowly must take them within limits.send."""


class StreamService(Protocol):
    """What a connection asks about its messages."""

    def respond_stream(self, message: bytes) -> bytes | Forward | None:
        """The reply at once, what must be forwarded, or None where the connection is to be closed."""

    async def forward_stream(self, forward: Forward, *, client: str) -> bytes:
        """The reply to a query that is not ours, in bounded time; `client` is the address it came from."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What one connection, one client and all of them may use; seconds and counts."""

    idle: float = 30.0
    """Between the last reply and the next query: CoreDNS reuses a connection for 10 s (RFC 7766 section 6.2.3)."""
    message: float = 10.0
    """For the first octet on a connection, and for a whole message once it has begun."""
    send: float = 5.0
    """For replies that leave together to be taken."""
    closing: float = 1.0
    """For the client to close too, once it has our FIN."""
    pipelined: int = 64
    connections: int = 1024
    per_client: int = 256


class _Turn(NamedTuple):
    """What came of a turn."""

    frames: bytes
    """Replies to be sent."""
    waiting: Forward | None = None
    """A query for which there was no slot."""
    garbage: bool = False
    """It met what is not DNS."""


class StreamConnection:
    """Serves one connection. `turns` is one semaphore for all of them, of TURNS: who has it works."""

    def __init__(
        self,
        stream: trio.SocketStream,
        service: StreamService,
        *,
        client: str,
        limits: StreamLimits,
        turns: trio.Semaphore,
    ) -> None:
        self._stream = stream
        self._service = service
        self._client = client
        self._limits = limits
        self._turns = turns
        self._received = bytearray()
        self._sending = trio.Lock()
        self._slots = trio.Semaphore(limits.pipelined)
        self._idle = trio.CancelScope()
        self._seen_message = False
        self._stopping = False
        self._ended = False

    async def run(self) -> None:
        """Serve until the client ends, breaks a limit or sends what is not DNS, or until stopped."""
        async with trio.open_nursery() as nursery:
            while await self._wait_for_message():
                # To acquire it takes a turn of the loop even if it is free: so many work in one turn, and no more.
                async with self._turns:
                    turn = self._take_turn(nursery)
                if turn.frames:
                    await self._send(turn.frames, nursery.cancel_scope)
                if turn.garbage:
                    nursery.cancel_scope.cancel()  # what follows cannot be told apart either
                    break
                if turn.waiting is not None:
                    await self._slots.acquire()
                    nursery.start_soon(self._forward, turn.waiting, nursery.cancel_scope)
        if not nursery.cancel_scope.cancel_called:
            await self._finish()

    def stop(self) -> None:
        """Take no more queries; one that has begun to arrive and those under way are answered."""
        self._stopping = True
        self._idle.cancel()

    def _take_turn(self, nursery: trio.Nursery) -> _Turn:
        """Answer messages that have arrived whole, for a share of a slice; one at least."""
        frames: list[bytes] = []
        size = 0
        end = perf_counter() + SLICE / TURNS
        while size < _JOINED and stream_frames.is_whole(self._received):
            outcome = self._service.respond_stream(stream_frames.take_message(self._received))
            if outcome is None:
                return _Turn(b"".join(frames), garbage=True)
            if isinstance(outcome, bytes):
                frames.append(stream_frames.format_message(outcome))
                size += len(frames[-1])
            elif self._slots.value:
                self._slots.acquire_nowait()
                nursery.start_soon(self._forward, outcome, nursery.cancel_scope)
            else:
                return _Turn(b"".join(frames), waiting=outcome)
            if perf_counter() >= end:
                break
        return _Turn(b"".join(frames))

    async def _forward(self, forward: Forward, connection: trio.CancelScope) -> None:
        try:
            reply = await self._service.forward_stream(forward, client=self._client)
            await self._send(stream_frames.format_message(reply), connection)
        finally:
            self._slots.release()
        self._idle.deadline = trio.current_time() + self._limits.idle

    async def _send(self, frames: bytes, connection: trio.CancelScope) -> None:
        """Send whole messages in one write (RFC 7766 section 8); a client that does not take them is cut off."""
        with trio.move_on_after(self._limits.send) as scope:
            try:
                await self._send_in_order(frames)
            except trio.BrokenResourceError:
                connection.cancel()
        if scope.cancelled_caught:
            connection.cancel()

    async def _send_in_order(self, frames: bytes) -> None:
        try:
            self._sending.acquire_nowait()  # nearly always; to await it would take a turn of the loop
        except trio.WouldBlock:
            await self._sending.acquire()
        try:
            await self._stream.send_all(frames)
        finally:
            self._sending.release()

    async def _wait_for_message(self) -> bool:
        """Whether a whole message has arrived; not when the client has ended, is gone, or lets a deadline pass."""
        received = self._received
        if not received and not self._stopping:
            # Between messages the client may take its time, and each reply gives it more.
            patience = self._limits.idle if self._seen_message else self._limits.message
            with trio.CancelScope(deadline=trio.current_time() + patience) as self._idle:
                await self._receive()
        if not stream_frames.is_whole(received):
            with trio.move_on_after(self._limits.message):
                while received and not self._ended and not stream_frames.is_whole(received):
                    await self._receive()
        self._seen_message = stream_frames.is_whole(received)
        return self._seen_message

    async def _receive(self) -> None:
        try:
            chunk = await self._stream.receive_some(_CHUNK)
        except trio.BrokenResourceError:
            chunk = b""
        self._ended = self._ended or not chunk
        self._received += chunk

    async def _finish(self) -> None:
        """Say FIN and read what is still on its way, so that closing does not turn into a reset."""
        with trio.move_on_after(self._limits.closing), contextlib.suppress(trio.BrokenResourceError):
            await self._stream.send_eof()
            while await self._stream.receive_some():
                pass
