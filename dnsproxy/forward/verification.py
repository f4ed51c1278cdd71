"""Verification: what a reply means for its client: the answer of a row, with what leads here replaced, or as it is.

The law: a query for a claimed name is forwarded like any other. If the name's record leads to the row's load balancer,
or the name has no record, the row answers. If the record leads elsewhere, the reply passes unchanged. Without a usable
reply the row answers too, unless ownership is enforced: nobody else is known to have the name. Looks beside answers are
bounded; one that finds no room is left to a later query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
import trio

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Answer, Forward, answer_from
from dnsproxy.answers.table import HostTable
from dnsproxy.dns.wire import Query, Rcode, Type, is_truncated, plain_query
from dnsproxy.forward import replies
from dnsproxy.forward.deadlines import GIVE_UP
from dnsproxy.forward.upstreams import Upstreams
from dnsproxy.replace.balancers import make_target
from dnsproxy.replace.replies import is_exempt, read_leads, replace_leads
from dnsproxy.replace.verdicts import (
    UNANSWERED,
    LeadsTo,
    Verdict,
    Verdicts,
    join_verdicts,
    judge,
    judged_type,
    key_of,
    other_family,
)
from dnsproxy.tap.seen import Outcome

_AT_ONCE: Final = 8
"""Looks beside answers that run side by side."""
_EACH_SECOND: Final = 50
"""The most that begin within a second."""


class Verification:
    """Judges replies by the table of the server, and keeps the verdicts on claimed names."""

    def __init__(self, upstreams: Upstreams, *, counters: Counters) -> None:
        self.verdicts = Verdicts()
        self.nursery: trio.Nursery | None = None
        """Where looks beside answers run; without it there are none."""
        self._table = HostTable()
        self._upstreams = upstreams
        self._counters = counters
        self._looking: set[bytes] = set()
        self._begun = 0, 0
        """A second, and how many looks have begun in it."""
        self._log = structlog.get_logger("dnsproxy.forwarder")

    @property
    def search(self) -> Callable[[bytes], object] | None:
        """Finds what may have to be replaced in a reply; None: nothing is."""
        return self._table.leads.search

    def use(self, table: HostTable) -> None:
        """Judge by the load balancers of this table from now on."""
        if table.leads.balancers != self._table.leads.balancers:
            self.verdicts.end_all(trio.current_time())
        self._table = table

    # --- Before a query is forwarded ---

    def may_answer(self, name: bytes, rtype: int, row: Answers) -> bool:
        """See QuickAnswers: whether a row answers without another look."""
        found = self._find_fresh(name, rtype, row)
        return found is not None and is_answered(found.place, row.claimed)

    def answer_known(self, forward: Forward, *, stream: bool, keepalive: float | None = None) -> Answer | None:
        """The answer of a row by a verdict that is there, which is renewed beside if its time is over."""
        query, claim = forward.query, forward.claim
        if claim is None:
            return None
        found = self.verdicts.find_joined(query.name, judged_type(query.type), trio.current_time())
        if found is None or not is_answered(found.place, claim.claimed):
            return None
        return Answer(answer_from(claim, query, stream=stream, keepalive=keepalive), forward)

    def look_beside(self, forward: Forward) -> None:
        """Find out where a claimed name leads, beside its answer; unless that is known, or too many are looked at."""
        query, claim, now = forward.query, forward.claim, trio.current_time()
        rtype = judged_type(query.type)
        key = key_of(query.name, rtype)
        if claim is None or self.nursery is None or key in self._looking:
            return
        if self._find_fresh(query.name, rtype, claim) is not None:
            return
        second, begun = self._begun
        begun = begun if second == int(now) else 0
        if begun < _EACH_SECOND and len(self._looking) < _AT_ONCE:
            self._begun = int(now), begun + 1
            self._looking.add(key)
            self.nursery.start_soon(self._look_beside, plain_query(query.name, rtype), claim, key)

    # --- For readers of the whole table ---

    async def look(self, name: bytes, claim: Answers) -> Verdict:
        """Where an exact name leads that an object claims, over all families of addresses that its row has.

        It asks for what is not known, and pushes out no verdict on a name that clients ask for. The caller bounds how
        many run side by side.
        """
        if not self._upstreams.used:
            return Verdict(LeadsTo.NOWHERE, trio.current_time() + UNANSWERED)
        families = {int(Type.AAAA) if ":" in address else int(Type.A) for address in claim.addresses}
        return join_verdicts([await self._look(name, rtype, claim) for rtype in sorted(families)])

    async def _look(self, name: bytes, rtype: int, claim: Answers) -> Verdict:
        found = self._find_fresh(name, rtype, claim)
        return found or await self._find_out(plain_query(name, rtype), claim, spare=True)

    # --- After a reply, or without one ---

    def note_reply(self, query: Query, claim: Answers, reply: bytes | None, *, spare: bool = False) -> Verdict | None:
        """Keep what a reply to a claimed name says (None: there was none); None if the other family has to be asked."""
        now = trio.current_time()
        if reply is not None and is_truncated(reply):
            return Verdict(LeadsTo.ELSEWHERE, now)  # it passes, and its client comes again over TCP
        found, rest = self._judge(query, claim, reply, now)
        if found is None:
            other = self._find_fresh(query.name, other_family(query.type), claim)
            if other is None:
                return None
            found = other._replace(until=rest.until)
        return self._note(query, found, spare=spare)

    async def look_at_other(self, query: Query, claim: Answers, *, spare: bool = False) -> Verdict:
        """The verdict on a name whose reply is empty or an error: what the other family of addresses says."""
        other = plain_query(query.name, other_family(query.type))
        reply = await self._ask(other)
        found, rest = self._judge(other, claim, reply, trio.current_time())
        self._note(other, found or rest, spare=spare)
        return self._note(query, found or rest, spare=spare)

    def pass_on(
        self, forward: Forward, reply: bytes, verdict: Verdict | None, *, stream: bool, limit: int
    ) -> tuple[bytes, Outcome]:
        """What the client gets of a reply, and how that is shown; `verdict` is the one on a claimed name."""
        query, shields, claim = forward
        shields = shields and not is_exempt(query)
        if claim is not None and verdict is not None and is_answered(verdict.place, claim.claimed):
            return answer_from(claim, query, stream=stream), Outcome.TABLE
        leads = self._table.leads
        own = make_target(claim.addresses) if claim is not None else None
        found = claim is not None or (leads.search is not None and leads.search(reply))
        if found and not is_exempt(query) and not self._table.never.get(query.name):
            replaced = replace_leads(reply, leads, ttl=self._table.ttl, own=own)
            if replaced is not None:
                self._counters.forward_replaced += 1
                return replies.pass_on(replaced, query, shields=shields, limit=limit), Outcome.REPLACED
        return replies.pass_on(reply, query, shields=shields, limit=limit), Outcome.UPSTREAM

    def answer_without_reply(self, forward: Forward, *, stream: bool) -> bytes | None:
        """The answer to a claimed name when no upstream has given one; None if its row must not answer then."""
        if forward.claim is None:
            return None
        verdict = self.note_reply(forward.query, forward.claim, None)
        if verdict is None or not is_answered(verdict.place, forward.claim.claimed):
            return None
        return answer_from(forward.claim, forward.query, stream=stream)

    def _find_fresh(self, name: bytes, rtype: int, row: Answers) -> Verdict | None:
        """The verdict that needs no other look: not when its name has got another row, as that of another class."""
        found = self.verdicts.find_fresh(name, rtype, trio.current_time())
        is_other = found is not None and found.place is LeadsTo.HERE and found.row != row.addresses
        return None if is_other else found

    def _judge(self, query: Query, claim: Answers, reply: bytes | None, now: float) -> tuple[Verdict | None, Verdict]:
        """See judge(); and the verdict if the other family says nothing either."""
        reading = read_leads(reply, self._table.leads) if reply is not None else None
        found = judge(reading, query.type, own=make_target(claim.addresses), now=now)
        if found is not None and found.place is LeadsTo.HERE:
            found = found._replace(row=claim.addresses)
        if reading is not None and reading.rcode == Rcode.NOERROR:
            return found, Verdict(LeadsTo.NOWHERE, now + reading.ttl)
        return found, Verdict(LeadsTo.NOWHERE, now + UNANSWERED, sure=False)

    def _note(self, query: Query, verdict: Verdict, *, spare: bool = False) -> Verdict:
        """Keep a verdict; `spare`: only if it pushes out no other one. Returns the verdict that applies to the name."""
        name, rtype = query.name, judged_type(query.type)
        if rtype != query.type and (verdict.place is LeadsTo.ELSEWHERE or not verdict.sure):
            return verdict  # a reply of another type tells nothing about addresses, but that there is no such name
        if not verdict.sure:
            before = self.verdicts.find(name, rtype, trio.current_time())
            if before is not None:
                verdict = before._replace(until=max(before.until, verdict.until))
        self.verdicts.note(name, rtype, verdict, below=name not in self._table.exact, spare=spare)
        return self.verdicts.find_joined(name, rtype, trio.current_time()) or verdict

    async def _look_beside(self, query: Query, claim: Answers, key: bytes) -> None:
        try:
            await self._find_out(query, claim)
        except Exception:  # noqa: BLE001  # one look may fail alone: no client waits for it
            self._counters.failures += 1
            self._log.exception("a look beside an answer failed")
        finally:
            self._looking.discard(key)

    async def _find_out(self, query: Query, claim: Answers, *, spare: bool = False) -> Verdict:
        """Ask for a verdict and keep it."""
        found = self.note_reply(query, claim, await self._ask(query), spare=spare)
        return await self.look_at_other(query, claim, spare=spare) if found is None else found

    async def _ask(self, query: Query) -> bytes | None:
        with trio.move_on_after(GIVE_UP):
            return await self._upstreams.exchange(query)
        return None


def is_answered(place: LeadsTo, claimed: Claimed) -> bool:
    """Whether a row answers a name that leads there."""
    if not claimed.is_conditional:
        return True
    return place is LeadsTo.HERE or (place is LeadsTo.NOWHERE and claimed is not Claimed.ENFORCED)
