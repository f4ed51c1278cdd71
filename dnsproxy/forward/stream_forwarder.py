"""Forwarding for TCP clients: each query is a task of its connection, and is asked over TCP too.

The law: as for datagrams, a reply or SERVFAIL by GIVE_UP, within the same limits; a bug costs one query. Equal queries
are asked once (RFC 5452 section 5), because UDP is used if TCP fails; a query that comes back in a loop waits for
itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import structlog
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward, refuse
from dnsproxy.dns.wire import CACHED_ERROR, NO_REACHABLE_AUTHORITY, Query, Rcode, rcode_of
from dnsproxy.forward import replies
from dnsproxy.forward.admission import Admission, Failures
from dnsproxy.forward.deadlines import GIVE_UP
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.upstreams import Upstreams

_LIMIT: Final = 0xFFFF


class _UnderWay:
    """A query that is being asked, and all tasks that wait for its reply."""

    __slots__ = ("abandoned", "ended", "reply")

    def __init__(self) -> None:
        self.reply: bytes | None = None
        self.abandoned = True
        """Whether it ended because its client left, not with a reply or a timeout."""
        self.ended = trio.Event()


class StreamForwarder:
    """Shares upstreams, limits, failures and loop probes with the flights."""

    def __init__(
        self,
        upstreams: Upstreams,
        *,
        admission: Admission,
        failures: Failures,
        loops: LoopProbes,
        counters: Counters,
    ) -> None:
        self._upstreams = upstreams
        self._admission = admission
        self._failures = failures
        self._loops = loops
        self._counters = counters
        self._under_way: dict[bytes, _UnderWay] = {}
        self._log = structlog.get_logger("dnsproxy.forwarder")

    async def forward(self, forward: Forward, *, client: Hashable) -> bytes:
        """The reply, by GIVE_UP."""
        if self._loops.caught(forward.query.name):
            return refuse(forward.query, Rcode.REFUSED).message
        started = trio.current_time()
        if self._failures.holds(forward.query.message[2:], started):
            return replies.fail(forward.query, CACHED_ERROR, counters=self._counters)
        if not self._admission.admit(client):
            self._counters.forward_overload += 1
            return refuse(forward.query, Rcode.REFUSED).message
        passed = None
        try:
            passed = await self._exchange(forward, deadline=started + GIVE_UP)
        except Exception:  # noqa: BLE001  # a bug costs one query: the others of the connection go on
            self._counters.failures += 1
            self._log.exception("a query failed", octets=len(forward.query.message))
        finally:
            self._admission.release(client)
        self._counters.forward_seconds.observe(trio.current_time() - started)
        return self._count(forward, passed)

    async def _exchange(self, forward: Forward, *, deadline: float) -> bytes | None:
        reply = await self._ask(forward.query, deadline=deadline)
        if reply is None:
            return None
        return replies.pass_on(reply, forward.query, shields=forward.shields, limit=_LIMIT)

    async def _ask(self, query: Query, *, deadline: float) -> bytes | None:
        """The reply to this query, or to an equal query that is under way."""
        key = query.message[2:]
        while (other := self._under_way.get(key)) is not None:
            with trio.move_on_at(deadline) as waiting:
                await other.ended.wait()
            if waiting.cancelled_caught or not other.abandoned:
                return other.reply
        mine = self._under_way[key] = _UnderWay()
        try:
            with trio.move_on_at(deadline):
                mine.reply = await self._upstreams.exchange(query)
            mine.abandoned = False
            if mine.reply is None:
                self._remember(key, trio.current_time())
        finally:
            del self._under_way[key]
            mine.ended.set()
        return mine.reply

    def _remember(self, key: bytes, now: float) -> None:
        # The sweep over the flights does this too, but it stops when there are no flights.
        self._failures.forget_old(now)
        self._failures.add(key, now)

    def _count(self, forward: Forward, passed: bytes | None) -> bytes:
        if passed is None:
            self._counters.forward_timeouts += 1
            return replies.fail(forward.query, NO_REACHABLE_AUTHORITY, counters=self._counters)
        self._counters.upstream_by_rcode[rcode_of(passed)] += 1
        return passed
