"""One connection to a collector: its handshake, what was seen, and its end.

The law: every wait has a bound but the one for the next query. What was begun is sent whole or not at all, so a frame
is never cut by another, also at the end of the program.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy.dnstap.frames import CONTENT_TYPE, BadFrame, Control, ControlReader, Kind, format_control, format_data
from dnsproxy.dnstap.messages import MessageWriter
from dnsproxy.dnstap.numbers import DnstapNumbers
from dnsproxy.dnstap.settings import Collector
from dnsproxy.tap.hub import Subscription, Tap
from dnsproxy.tap.seen import Seen
from sidecar.values.endpoints import Endpoint

CONNECT_SECONDS: Final = 5.0
"""For a connection and its handshake."""
STALL_SECONDS: Final = 60.0
"""A collector that takes nothing for so long is lost: TCP itself gives a dead host up after a quarter of an hour."""
_PIECE: Final = 512

log = structlog.get_logger("dnsproxy.dnstap")


class LostCollector(Exception):
    """There is no collector at the other end, or not any more; the message says why."""


@contextmanager
def _translated() -> Iterator[None]:
    """What a peer or a network did, as one error."""
    try:
        yield
    except BadFrame as error:
        raise LostCollector(f"it sent {error}") from error
    except trio.TooSlowError as error:
        raise LostCollector("it was too slow") from error
    except (OSError, trio.BrokenResourceError) as error:
        raise LostCollector(str(error) or type(error).__name__) from error


async def open_connection(collector: Collector, writer: MessageWriter, numbers: DnstapNumbers) -> Connection:
    """A connection after its handshake. Raises LostCollector."""
    with _translated(), trio.fail_after(CONNECT_SECONDS):
        stream = await _dial(collector)
        try:
            connection = Connection(stream, writer, numbers)
            await connection.shake_hands()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return connection


async def _dial(collector: Collector) -> trio.SocketStream:
    if isinstance(collector, Endpoint):
        return await trio.open_tcp_stream(collector.host, collector.port)
    return await trio.open_unix_socket(str(collector))


class Connection:
    """A stream to a collector."""

    def __init__(self, stream: trio.SocketStream, writer: MessageWriter, numbers: DnstapNumbers) -> None:
        self._stream = stream
        self._writer = writer
        self._numbers = numbers
        self._reader = ControlReader()
        self._unsent = memoryview(b"")
        self._unsent_queries = 0
        self._lost = ""

    async def shake_hands(self) -> None:
        """READY, ACCEPT, START. Raises LostCollector, BadFrame, or an error of the network."""
        content = (CONTENT_TYPE,)
        await self._stream.send_all(format_control(Control(Kind.READY, content)))
        accepted = await self._expect(Kind.ACCEPT)
        if not accepted.accepts(CONTENT_TYPE):
            raise LostCollector(f"it accepts {accepted.content_types[0][:80]!r}, not {CONTENT_TYPE!r}")
        await self._stream.send_all(format_control(Control(Kind.START, content)))

    async def run(self, tap: Tap, *, finish: float) -> str:
        """Send what the tap shows until the collector is lost; returns why.

        If cancelled: what is left and STOP, for `finish` seconds at most.
        """
        async with self._stream:
            with tap.subscribe() as subscription:
                self._numbers.note_connected(subscription.take_dropped)
                try:
                    await self._exchange(subscription)
                finally:
                    if not self._lost:
                        with trio.move_on_after(finish, shield=True):
                            await self._end(subscription)
                    self._numbers.drop(self._unsent_queries + subscription.waiting)
                    self._numbers.note_lost()
        return self._lost

    async def _exchange(self, subscription: Subscription) -> None:
        async with trio.open_nursery() as nursery:
            for work in (partial(self._send, subscription), self._watch):
                nursery.start_soon(self._until_lost, work, nursery.cancel_scope)

    async def _until_lost(self, work: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
        try:
            with _translated():
                await work()
        except LostCollector as error:
            self._lost = self._lost or str(error)
            scope.cancel()

    async def _watch(self) -> None:
        """A collector says nothing before it is told to stop: what comes is the end."""
        await self._expect(Kind.FINISH)
        raise LostCollector("it finished")

    async def _send(self, subscription: Subscription) -> None:
        while True:
            await self._send_next(subscription)

    async def _send_next(self, subscription: Subscription) -> None:
        frames = await subscription.receive(self._frames_of)
        self._unsent, self._unsent_queries = memoryview(b"".join(frames)), len(frames)
        await self._flush()

    def _frames_of(self, seen: Seen) -> bytes:
        try:
            return b"".join(map(format_data, self._writer.messages_of(seen)))
        except Exception:  # a bug here costs the collector a query, and no client its answer
            log.exception("a query was not written for dnstap")
            return b""

    async def _flush(self) -> None:
        """Send what is left; if this is cancelled, the rest can follow."""
        while self._unsent:
            with trio.fail_after(STALL_SECONDS):
                sent = await self._stream.socket.send(self._unsent)
            self._unsent = self._unsent[sent:]
        self._numbers.sent += self._unsent_queries
        self._unsent_queries = 0

    async def _end(self, subscription: Subscription) -> None:
        with suppress(LostCollector), _translated():
            await self._flush()
            while subscription.waiting:
                await self._send_next(subscription)
            await self._stream.send_all(format_control(Control(Kind.STOP)))
            await self._expect(Kind.FINISH)

    async def _expect(self, kind: Kind) -> Control:
        while (control := self._reader.next_control()) is None:
            piece = await self._stream.receive_some(_PIECE)
            if not piece:
                raise LostCollector("it closed the connection")
            self._reader.feed(piece)
        if control.kind is not kind:
            raise BadFrame(f"{control.kind.name} where {kind.name} belongs")
        return control
