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
from dnsproxy.forward.upstreams import Answered, Upstreams
from dnsproxy.forward.verification import Verification
from dnsproxy.tap.hub import Tap
from dnsproxy.tap.seen import Exchange, Outcome, outcome_of

_LIMIT: Final = 0xFFFF


class _UnderWay:
    """A query that is being asked, and all tasks that wait for its reply."""

    __slots__ = ("abandoned", "answered", "ended")

    def __init__(self) -> None:
        self.answered: Answered | None = None
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
        verification: Verification,
        counters: Counters,
        tap: Tap,
    ) -> None:
        self._upstreams = upstreams
        self._admission = admission
        self._failures = failures
        self._loops = loops
        self._verification = verification
        self._counters = counters
        self._tap = tap
        self._under_way: dict[bytes, _UnderWay] = {}
        self._log = structlog.get_logger("dnsproxy.forwarder")

    async def forward(self, forward: Forward, *, client: str, port: int = 0) -> bytes:
        """The reply, by GIVE_UP, to a query from this address and port."""
        started = trio.current_time()
        reply, outcome, exchange = await self._forward(forward, client=client)
        if self._tap.listening:
            seconds = trio.current_time() - started
            asked = (None, (client, port))
            self._tap.note(asked, forward.query.message, reply, outcome, seconds=seconds, exchange=exchange)
        return reply

    async def _forward(self, forward: Forward, *, client: Hashable) -> tuple[bytes, Outcome, Exchange | None]:
        looped = self._loops.answer(forward.query)
        if looped is not None:
            return looped, outcome_of(looped), None
        started = trio.current_time()
        if self._failures.holds(forward.query.message[2:], started):
            return replies.fail(forward.query, CACHED_ERROR, counters=self._counters), Outcome.FAILED, None
        if not self._admission.admit(client):
            self._counters.forward_overload += 1
            return refuse(forward.query, Rcode.REFUSED).message, Outcome.REFUSED, None
        passed, answered, outcome = None, None, Outcome.FAILED
        try:
            answered = await self._ask(forward.query, deadline=started + GIVE_UP)
            if answered is not None:
                passed, outcome = await self._judge(forward, answered.message, deadline=started + GIVE_UP)
        except Exception:  # noqa: BLE001  # a bug costs one query: the others of the connection go on
            self._counters.failures += 1
            self._log.exception("a query failed", octets=len(forward.query.message))
        finally:
            self._admission.release(client)
        seconds = trio.current_time() - started
        self._counters.forward_seconds.observe(seconds)
        if passed is None:
            passed = self._verification.answer_without_reply(forward, stream=True)
            outcome = Outcome.FAILED if passed is None else Outcome.TABLE
        exchange = (
            _exchange_of(forward.query, answered, seconds) if answered and passed and self._tap.listening else None
        )
        return self._count(forward, passed, outcome), outcome, exchange

    async def _judge(self, forward: Forward, reply: bytes, *, deadline: float) -> tuple[bytes | None, Outcome]:
        """What the client gets of a reply; None if what decides about it was not known in time."""
        query, claim, verdict = forward.query, forward.claim, None
        if claim is not None:
            verdict = self._verification.note_reply(query, claim, reply)
            if verdict is None:
                with trio.move_on_at(deadline):
                    verdict = await self._verification.look_at_other(query, claim)
            if verdict is None:
                return None, Outcome.FAILED
        return self._verification.pass_on(forward, reply, verdict, stream=True, limit=_LIMIT)

    async def _ask(self, query: Query, *, deadline: float) -> Answered | None:
        """The reply to this query, or to an equal query that is under way."""
        key = query.message[2:]
        while (other := self._under_way.get(key)) is not None:
            with trio.move_on_at(deadline) as waiting:
                await other.ended.wait()
            if waiting.cancelled_caught or not other.abandoned:
                return other.answered
        mine = self._under_way[key] = _UnderWay()
        try:
            with trio.move_on_at(deadline):
                mine.answered = await self._upstreams.exchange_with_source(query)
            mine.abandoned = False
            if mine.answered is None:
                self._remember(key, trio.current_time())
        finally:
            del self._under_way[key]
            mine.ended.set()
        return mine.answered

    def _remember(self, key: bytes, now: float) -> None:
        # The sweep over the flights does this too, but it stops when there are no flights.
        self._failures.forget_old(now)
        self._failures.add(key, now)

    def _count(self, forward: Forward, passed: bytes | None, outcome: Outcome) -> bytes:
        if passed is None:
            self._counters.forward_timeouts += 1
            return replies.fail(forward.query, NO_REACHABLE_AUTHORITY, counters=self._counters)
        counts = self._counters.table_by_rcode if outcome is Outcome.TABLE else self._counters.upstream_by_rcode
        counts[rcode_of(passed)] += 1
        return passed


def _exchange_of(query: Query, answered: Answered, seconds: float) -> Exchange:
    sent = answered.message[:2] + query.message[2:]
    return Exchange(str(answered.endpoint), answered.datagram, seconds, query=sent, reply=answered.message)
