"""DNS over TCP (RFC 7766): pipelined queries, answered out of order, on connections that outlive CoreDNS's reuse.

The law: a connection costs a bounded number of tasks and octets, waits are bounded by a deadline beside each, and one
connection's fault ends that connection alone. It is closed with FIN, all input read, because a client that reuses
connections counts a reset as our failure.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import structlog
import trio

from dnsproxy import stream_frames
from dnsproxy.counters import Counters
from dnsproxy.responder import Forward


class StreamService(Protocol):
    """What a connection asks about its messages."""

    def respond_stream(self, message: bytes) -> bytes | Forward | None:
        """The reply at once, what must be forwarded, or None where the connection is to be closed."""

    async def forward_stream(self, forward: Forward) -> bytes:
        """The reply to a query that is not ours, in bounded time."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What one connection, one client and all of them may use; seconds and counts."""

    idle: float = 30.0
    """Between the last reply and the next query: CoreDNS reuses a connection for 10 s (RFC 7766 section 6.2.3)."""
    message: float = 10.0
    """For the first octet on a connection, and for a whole message once it has begun."""
    send: float = 5.0
    """For one reply to be taken."""
    closing: float = 1.0
    """For the client to close too, once it has our FIN."""
    pipelined: int = 64
    connections: int = 1024
    per_client: int = 256


class StreamServer:
    """Serves connections, bounded in total and per client address."""

    def __init__(self, service: StreamService, *, counters: Counters, limits: StreamLimits) -> None:
        self._service = service
        self._counters = counters
        self._limits = limits
        self._clients: Counter[str] = Counter()
        self._connections: set[_Connection] = set()
        self._stopping = False
        self._emptied = trio.Event()
        self._log = structlog.get_logger("dnsproxy.tcp")

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one accepted connection to its end; a handler for trio.serve_listeners."""
        client = _client_of(stream)
        full = self._clients.total() >= self._limits.connections
        if self._stopping or client is None or full or self._clients[client] >= self._limits.per_client:
            self._counters.tcp_refused += 1
            await trio.aclose_forcefully(stream)
            return
        self._clients[client] += 1
        self._counters.tcp_connections += 1
        connection = _Connection(stream, self._service, self._limits)
        self._connections.add(connection)
        try:
            await connection.run()
        except Exception:  # noqa: BLE001  # one connection may fail alone; ending here would end every client's service
            self._counters.failures += 1
            self._log.exception("a connection failed")
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._emptied.set()
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            await trio.aclose_forcefully(stream)

    async def drain(self) -> None:
        """Take no more queries on any connection, and wait until all have ended, with FIN once all is answered."""
        self._stopping = True
        for connection in self._connections:
            connection.stop()
        if self._connections:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()


class _Connection:
    def __init__(self, stream: trio.SocketStream, service: StreamService, limits: StreamLimits) -> None:
        self._stream = stream
        self._service = service
        self._limits = limits
        self._received = bytearray()
        self._sending = trio.Lock()
        self._slots = trio.Semaphore(limits.pipelined)
        self._idle = trio.CancelScope()
        self._seen_message = False
        self._stopping = False
        self._ended = False

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            while (message := await self._next_message()) is not None:
                outcome = self._service.respond_stream(message)
                if outcome is None:
                    nursery.cancel_scope.cancel()  # not DNS: what follows cannot be told apart either
                    break
                if isinstance(outcome, bytes):
                    await self._send(outcome, nursery.cancel_scope)
                else:
                    await self._slots.acquire()
                    nursery.start_soon(self._forward, outcome, nursery.cancel_scope)
        if not nursery.cancel_scope.cancel_called:
            await self._finish()

    def stop(self) -> None:
        """Take no more queries; one that has begun to arrive and those under way are answered."""
        self._stopping = True
        self._idle.cancel()

    async def _forward(self, forward: Forward, connection: trio.CancelScope) -> None:
        try:
            await self._send(await self._service.forward_stream(forward), connection)
        finally:
            self._slots.release()
        self._idle.deadline = trio.current_time() + self._limits.idle

    async def _send(self, reply: bytes, connection: trio.CancelScope) -> None:
        """Send length and message in one write (RFC 7766 section 8); a client that does not take it is cut off."""
        with trio.move_on_after(self._limits.send) as scope:
            try:
                async with self._sending:
                    await self._stream.send_all(stream_frames.format_message(reply))
            except trio.BrokenResourceError:
                connection.cancel()
        if scope.cancelled_caught:
            connection.cancel()

    async def _next_message(self) -> bytes | None:
        """The next whole message; None when the client has ended, is gone, or lets a deadline pass."""
        received = self._received
        if not received and not self._stopping:
            # Between messages the client may take its time, and each reply gives it more.
            patience = self._limits.idle if self._seen_message else self._limits.message
            with trio.CancelScope(deadline=trio.current_time() + patience) as self._idle:
                await self._receive()
        with trio.move_on_after(self._limits.message):
            while received and not self._ended and not stream_frames.is_whole(received):
                await self._receive()
        if not stream_frames.is_whole(received):
            return None
        self._seen_message = True
        return stream_frames.take_message(received)

    async def _receive(self) -> None:
        try:
            chunk = await self._stream.receive_some()
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


def _client_of(stream: trio.SocketStream) -> str | None:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None  # gone before we looked
