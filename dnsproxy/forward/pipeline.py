"""A pipeline: many queries to one upstream share one connection (RFC 7766 section 6.2.1), plain or TLS (RFC 7858).

The law: a connection is opened when a query needs it and closed after a time without queries. If a connection that has
answered before ends, its queries get a new connection, once. Any other failure counts as an upstream that did not
answer, and is never an exception.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

import structlog
import trio

from dnsproxy.dns import stream_frames
from dnsproxy.dns.wire import Query, random_ids
from dnsproxy.forward import replies
from dnsproxy.forward.deadlines import CONNECT, IDLE, SEND
from dnsproxy.forward.settings import TlsEndpoint
from sidecar.values.endpoints import Endpoint

_QUEUED: Final = 256  # messages in the outbox; when it is full, further queries wait

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
MakeContext = Callable[[], ssl.SSLContext]


def default_context() -> ssl.SSLContext:
    """TLS 1.2 or newer; certificate and name are verified against the system's authorities (or SSL_CERT_FILE)."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _Waiter:
    __slots__ = ("answered", "query", "reply")

    def __init__(self, query: Query) -> None:
        self.query = query
        self.reply: bytes | None = None
        self.answered = trio.Event()


class _Connection:
    """An open connection, and the queries that wait on it, by message ID."""

    def __init__(self, stream: Stream) -> None:
        self.ended = False
        self.served = False
        self._stream = stream
        self._waiting: dict[bytes, _Waiter] = {}
        self._ids = random_ids()
        self._outbox, self._outgoing = trio.open_memory_channel[bytes](_QUEUED)

    async def run(self) -> None:
        """Write and read until the connection ends, is idle, or the task is cancelled."""
        try:
            async with self._stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                await self._read()
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the server closed it; the queries that wait are woken below
        finally:
            self.ended = True
            self._outgoing.close()
            for waiter in self._waiting.values():
                waiter.answered.set()

    async def exchange(self, query: Query) -> bytes | None:
        """The reply, or None if the connection ends before it."""
        message_id = next(self._ids)
        while message_id in self._waiting:
            message_id = next(self._ids)
        waiter = self._waiting[message_id] = _Waiter(query)
        try:
            # Another task writes it: a cancelled write would leave half a message in the stream.
            await self._outbox.send(stream_frames.format_message(message_id + query.message[2:]))
            await waiter.answered.wait()
        except trio.BrokenResourceError:
            return None  # the connection ended while the message was in the outbox
        else:
            return waiter.reply
        finally:
            del self._waiting[message_id]

    async def _write(self, connection: trio.CancelScope) -> None:
        async for frame in self._outgoing:
            with trio.move_on_after(SEND) as sending:
                await self._stream.send_all(frame)
            if sending.cancelled_caught:
                connection.cancel()

    async def _read(self) -> None:
        received = bytearray()
        while True:
            with trio.move_on_after(IDLE) as idle:
                chunk = await self._stream.receive_some()
                if not chunk:
                    return
                received += chunk
            if idle.cancelled_caught and not self._waiting:
                return
            while stream_frames.is_whole(received):
                self._take(stream_frames.take_message(received))

    def _take(self, reply: bytes) -> None:
        waiter = self._waiting.get(reply[:2])
        if waiter is not None and replies.belongs(reply, waiter.query.question):
            self.served = True
            waiter.reply = reply
            waiter.answered.set()


class Pipeline:
    """Keeps the connection to one upstream."""

    def __init__(self, endpoint: Endpoint, *, make_context: MakeContext = default_context) -> None:
        self.endpoint = endpoint
        self._context = make_context() if isinstance(endpoint, TlsEndpoint) else None
        self._connection: _Connection | None = None
        self._opening: trio.Event | None = None
        self._begun = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._reported = ""
        self._log = structlog.get_logger("dnsproxy.upstream")

    async def run(self) -> None:
        """Hold the connections until cancelled."""
        async with trio.open_nursery() as nursery:
            # Kept so that a query can open a connection that outlives the query; all connections end with run().
            self._nursery = nursery
            self._begun.set()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def ask(self, query: Query) -> bytes | None:
        """The reply, still with the ID used on the connection; None without a reply. The caller sets the deadline."""
        for _ in range(2):
            connection = await self._connected()
            if connection is None:
                return None
            reply = await connection.exchange(query)
            if reply is not None or not connection.served:
                return reply
        return None

    async def _connected(self) -> _Connection | None:
        # Queries that were queued in the socket of a starting server arrive here before run() starts.
        await self._begun.wait()
        if self._connection is None or self._connection.ended:
            if self._opening is None:
                if self._nursery is None:
                    return None
                self._opening = trio.Event()
                self._nursery.start_soon(self._open, self._opening)
            await self._opening.wait()
        return self._connection

    async def _open(self, opening: trio.Event) -> None:
        self._connection = None
        try:
            with trio.move_on_after(CONNECT) as connecting:
                self._connection = _Connection(await self._connect())
            self._report("timeout while connecting" if connecting.cancelled_caught else "")
        except (OSError, trio.BrokenResourceError) as error:
            self._report(_reason(error))
        finally:
            self._opening = None
            opening.set()
        if self._connection is not None:
            await self._connection.run()

    async def _connect(self) -> Stream:
        stream = await trio.open_tcp_stream(self.endpoint.host, self.endpoint.port)
        if self._context is None or not isinstance(self.endpoint, TlsEndpoint):
            return stream
        # Many servers skip the closing handshake, which DNS over TLS does not need: each message has a length.
        secured = trio.SSLStream(stream, self._context, server_hostname=self.endpoint.name, https_compatible=True)
        try:
            await secured.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secured

    def _report(self, reason: str) -> None:
        """Log once why an upstream is unreachable, and once that it is reachable again."""
        if reason and reason != self._reported:
            self._log.warning("upstream is unreachable over a stream", upstream=str(self.endpoint), cause=reason)
        elif self._reported and not reason:
            self._log.info("upstream is reachable again", upstream=str(self.endpoint))
        self._reported = reason


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]  # there is one address, so trio tried once
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {cause.verify_message}"
    return str(cause)
