"""A connection to an upstream, and the queries that wait on it for their replies.

The law: a connection is never trusted for longer than its replies show. If no reply arrives for SUSPECT seconds after a
query, a connection that has answered before is suspect: its path may have lost its state, so its queries are asked on
another connection too. If none arrives for SILENT seconds, it is closed. Any reply clears it, also a late one: a server
may answer other queries first (RFC 7766 section 7). Other octets do not: after one wrong length a stream stays out of
step for ever, and each query would wait in vain. Tested in test_pipeline.py and test_pipeline_silence.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from dnsproxy.dns import stream_frames
from dnsproxy.dns.wire import Query, random_ids
from dnsproxy.forward import replies
from dnsproxy.forward.deadlines import CLOSE, IDLE, SEND, SILENT, SUSPECT
from dnsproxy.forward.dial import Stream

_QUEUED: Final = 256  # messages in the outbox; when it is full, further queries wait
_LATE: Final = 1024  # queries that were given up, whose replies still count


class Waiter:
    """A query and its reply; it waits on one connection, or on more if the first ones are suspect."""

    __slots__ = ("_news", "_places", "answered_by", "query", "reply")

    def __init__(self, query: Query) -> None:
        self.query = query
        self.reply: bytes | None = None
        self.answered_by: Connection | None = None
        self._news = trio.Event()
        self._places: dict[Connection, bytes] = {}

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._places

    def add(self, connection: Connection, message_id: bytes) -> None:
        """Wait on one more connection."""
        self._places[connection] = message_id

    def wake(self) -> None:
        """The reply arrived, or a connection ended or became suspect."""
        self._news.set()

    async def wait(self, connection: Connection) -> None:
        """Wait for the reply, or until this connection cannot be relied on."""
        while self.reply is None and not connection.ended and not connection.suspect:
            await self._next_news()

    async def wait_out(self) -> None:
        """Wait for the reply, or until every connection has ended."""
        while self.reply is None and not all(connection.ended for connection in self._places):
            await self._next_news()

    async def _next_news(self) -> None:
        await self._news.wait()
        self._news = trio.Event()

    def forget(self) -> None:
        """Stop waiting on every connection."""
        for connection, message_id in self._places.items():
            connection.forget(message_id)


class Connection:
    """An open connection; run() must be running, and aclose() comes after it."""

    def __init__(self, stream: Stream, *, on_reply: Callable[[], None]) -> None:
        self.ended = False
        self.suspect = False
        """Whether another connection should be asked too."""
        self.silent = False
        """Whether it was closed because no reply arrived."""
        self.asked = 0
        self.replies = 0
        self.unanswered = 0
        """Queries without a reply at its end."""
        self._stream = stream
        self._on_reply = on_reply
        self._waiting: dict[bytes, Waiter] = {}
        self._late: dict[bytes, None] = {}
        self._ids = random_ids()
        self._outbox, self._outgoing = trio.open_memory_channel[bytes](_QUEUED)
        self._heard_at = trio.current_time()
        self._unheard_since: float | None = None  # the first query after the last reply
        self._reading = trio.CancelScope()

    async def run(self) -> None:
        """Write and read until the connection ends, is idle or silent, or the task is cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                await self._read()
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the server closed it; the queries that wait are woken below
        finally:
            self._end()

    async def aclose(self) -> None:
        """Close it after run(): the end of TLS is a message, which an upstream that reads nothing would hold up."""
        with trio.move_on_after(0 if self.silent else CLOSE):
            await self._stream.aclose()

    def _end(self) -> None:
        self.ended = True
        self._outgoing.close()
        waiters = self._waiting.values()
        self.unanswered = sum(waiter.reply is None for waiter in waiters)
        for waiter in waiters:
            waiter.wake()

    async def ask(self, waiter: Waiter) -> None:
        """Send a query; its waiter is woken by the reply, and if the connection ends or becomes suspect."""
        message_id = next(self._ids)
        while message_id in self._waiting:
            message_id = next(self._ids)
        self._waiting[message_id] = waiter
        self._late.pop(message_id, None)
        waiter.add(self, message_id)
        self.asked += 1
        if self._unheard_since is None:
            self._unheard_since = trio.current_time()
            self._reading.deadline = self._next_look()
        try:
            # Another task writes it: a cancelled write would leave half a message in the stream.
            await self._outbox.send(stream_frames.format_message(message_id + waiter.query.message[2:]))
        except trio.BrokenResourceError:
            waiter.wake()  # the connection ended while the message was in the outbox

    def forget(self, message_id: bytes) -> None:
        """Stop waiting for a reply."""
        waiter = self._waiting.pop(message_id)
        if waiter.answered_by is not self:
            self._late[message_id] = None
            if len(self._late) > _LATE:
                del self._late[next(iter(self._late))]

    async def _write(self, connection: trio.CancelScope) -> None:
        async for frame in self._outgoing:
            with trio.move_on_after(SEND) as sending:
                await self._stream.send_all(frame)
            if sending.cancelled_caught:
                connection.cancel()

    async def _read(self) -> None:
        received = bytearray()
        while True:
            with trio.CancelScope(deadline=self._next_look()) as self._reading:
                chunk = await self._stream.receive_some()
                if not chunk:
                    return
                received += chunk
            if self._reading.cancelled_caught and self._is_over(trio.current_time()):
                return
            while stream_frames.is_whole(received):
                self._take(stream_frames.take_message(received))

    def _next_look(self) -> float:
        if self._unheard_since is None:
            return self._heard_at + IDLE
        return self._unheard_since + (SUSPECT if self.replies and not self.suspect else SILENT)

    def _is_over(self, now: float) -> bool:
        """Whether to close it, because it is silent or idle; it may become suspect instead."""
        if self._unheard_since is None:
            self._heard_at = now
            return not self._waiting
        if now >= self._unheard_since + SILENT:
            self.silent = True
            return True
        self.suspect = True
        for waiter in self._waiting.values():
            waiter.wake()
        return False

    def _note_heard(self) -> None:
        self._heard_at, self._unheard_since, self.suspect = trio.current_time(), None, False

    def _take(self, reply: bytes) -> None:
        waiter = self._waiting.get(reply[:2])
        if waiter is None:
            if reply[:2] in self._late:
                del self._late[reply[:2]]
                self._note_heard()
        elif waiter.reply is None and replies.belongs(reply, waiter.query.question):
            self._note_heard()
            self.replies += 1
            waiter.reply, waiter.answered_by = reply, self
            waiter.wake()
            self._on_reply()
