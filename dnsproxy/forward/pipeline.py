"""A pipeline: many queries to one upstream share one connection (RFC 7766 section 6.2.1), plain or TLS (RFC 7858).

The law: a connection is opened when a query needs it and closed after a time without queries. As long as connections
bring replies, the queries of a connection that ends are asked again, and connection.py says when one is no longer
trusted. A server that closes after one reply gets a connection for each query, a limited number at a time. Any other
failure counts as an upstream that did not answer, and is never an exception. Health is judged by connections.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

import structlog
import trio

from dnsproxy.dns.wire import Query
from dnsproxy.forward.connection import Connection, Waiter
from dnsproxy.forward.deadlines import CONNECT, LEARNED, REPORT_EVERY, SILENT
from dnsproxy.forward.dial import Stream, default_context, dial, dial_failure
from dnsproxy.forward.flight import Health
from dnsproxy.forward.settings import TlsEndpoint
from sidecar.values.endpoints import Endpoint

_ALONE: Final = 16  # connections for one query each at one time; unbound accepts 10 and dnsmasq 20, others wait
_TRIES: Final = 8  # connections for one query, while other queries get their replies
_SINGLE: Final = 2  # connections in a row that end after one reply, until the server is known for it
_CAUSES: Final = 8  # faults that are logged in REPORT_EVERY seconds

MakeContext = Callable[[], ssl.SSLContext]


class Pipeline:
    """Keeps the connections to one upstream."""

    def __init__(
        self, endpoint: Endpoint, *, health: Health | None = None, make_context: MakeContext = default_context
    ) -> None:
        self.endpoint = endpoint
        self.health = health or Health()
        """Judged by connections: a reply is a success; silence, a failed dial, an end without a reply are misses."""
        self._context = make_context() if isinstance(endpoint, TlsEndpoint) else None
        self._connections: list[Connection] = []
        self._opening: trio.Event | None = None
        self._alone = trio.Semaphore(_ALONE)
        self._alone_until = 0.0
        self._singles = 0
        self._replies = 0
        self._begun = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._reported = ""
        self._quiet_until: dict[str, float] = {}
        self._log = structlog.get_logger("dnsproxy.upstream")

    @property
    def takes_one_query(self) -> bool:
        """Whether the server closes a connection after one reply: then a query asked twice takes two connections."""
        return trio.current_time() < self._alone_until

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
        # Queries that were queued in the socket of a starting server arrive here before run() starts.
        await self._begun.wait()
        if self.takes_one_query:
            return await self._ask_alone(query)
        waiter = Waiter(query)
        try:
            last = await self._ask_shared(waiter)
            if waiter.reply is None and last is not None and self._should_ask_alone(last):
                return await self._ask_alone(query)
        finally:
            waiter.forget()
        return waiter.reply

    async def _ask_shared(self, waiter: Waiter) -> Connection | None:
        """Ask on connections that other queries use too; returns the last one, None if there is none to use."""
        while (connection := await self._connected()) is not None:
            if connection not in waiter:
                await connection.ask(waiter)
            await waiter.wait(connection)
            if waiter.reply is not None:
                return connection
            if connection.ended and (not (connection.replies or connection.silent) or self.takes_one_query):
                break
        # No further connection helps; a suspect one may still bring the reply.
        await waiter.wait_out()
        return connection

    def _should_ask_alone(self, connection: Connection) -> bool:
        """Whether other queries may be the reason that a query has no reply: some servers close for one of them."""
        return self.takes_one_query or (connection.asked > 1 and not connection.silent)

    async def _connected(self) -> Connection | None:
        """A connection that can be relied on; None if none can be opened."""
        if self._usable() is None:
            if self._opening is None:
                if self._nursery is None:
                    return None
                self._opening = trio.Event()
                self._nursery.start_soon(self._open, self._opening)
            await self._opening.wait()
        return self._usable()

    def _usable(self) -> Connection | None:
        return next((one for one in self._connections if not one.ended and not one.suspect), None)

    async def _open(self, opening: trio.Event) -> None:
        connection = None
        try:
            stream = await self._dial()
            if stream is not None:
                connection = Connection(stream, on_reply=self._note_reply)
                self._connections.append(connection)
        finally:
            self._opening = None
            opening.set()
        if connection is not None:
            try:
                await self._run(connection)
            finally:
                self._connections.remove(connection)

    async def _run(self, connection: Connection) -> None:
        try:
            await connection.run()
            # At once, so that the woken queries know what their connection has shown.
            self._note_end(connection)
        finally:
            await connection.aclose()

    async def _ask_alone(self, query: Query) -> bytes | None:
        """Ask on a connection of its own; again if it fails while other queries get their replies."""
        for _ in range(_TRIES):
            async with self._alone:
                if self._nursery is None or (self.health.failing and not self.takes_one_query):
                    return None
                before = self._replies
                reply = await self._exchange_alone(query)
            if reply is not None or self._replies == before:
                return reply
        return None

    async def _exchange_alone(self, query: Query) -> bytes | None:
        stream = await self._dial()
        if stream is None:
            return None
        connection = Connection(stream, on_reply=self._note_reply)
        waiter = Waiter(query)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run, connection)
            await connection.ask(waiter)
            await waiter.wait_out()
            nursery.cancel_scope.cancel()
        return waiter.reply

    async def _dial(self) -> Stream | None:
        reason = "timeout while connecting"
        try:
            with trio.move_on_after(CONNECT):
                return await dial(self.endpoint, self._context)
        except (OSError, trio.BrokenResourceError) as error:
            reason = dial_failure(error)
        self.health.misses += 1
        self._report("upstream is unreachable over a stream", reason)
        return None

    def _note_reply(self) -> None:
        self._replies += 1
        self.health.misses = 0
        if self._reported:
            self._reported = ""
            self._log.info("upstream is reachable again", upstream=str(self.endpoint))

    def _note_end(self, connection: Connection) -> None:
        """Judge the upstream by a connection that has ended."""
        if connection.silent:
            self.health.misses += 1
            self._report(
                "upstream is silent on a connection; it is closed, and its queries are asked on another one",
                f"no reply arrived for {SILENT} s after a query",
            )
        elif connection.unanswered and not connection.replies:
            self.health.misses += 1
        self._learn(single=connection.replies == 1 and connection.unanswered > 0 and not connection.silent)

    def _learn(self, *, single: bool) -> None:
        """Learn whether the server takes one query a connection (RFC 7766 section 6.2.3 permits it to close)."""
        self._singles = self._singles + 1 if single else 0
        if self._singles >= _SINGLE:
            self._singles = 0
            self._alone_until = trio.current_time() + LEARNED

    def _report(self, event: str, cause: str) -> None:
        """Log a fault once; _note_reply logs its end.

        Behind a balancer some connections may fail and others not, many times a second, each for a reason of its own.
        """
        now = trio.current_time()
        quiet = self._quiet_until = {one: until for one, until in self._quiet_until.items() if until > now}
        if cause != self._reported and cause not in quiet and len(quiet) < _CAUSES:
            self._log.warning(event, upstream=str(self.endpoint), cause=cause)
            self._reported = cause
            quiet[cause] = now + REPORT_EVERY
