"""The responder: what one message gets from the table, the zones or this server itself, over any transport.

The law: an answer from the table waits for nothing, and a bug costs one query: it is caught here, and for replies in
forward/completion.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Answer, Drop, Forward, Refuse, decide, server_failure
from dnsproxy.answers.quick import QuickAnswers, Unanswered
from dnsproxy.answers.quick_forwards import QuickForwards
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import probe
from dnsproxy.dns.wire import Query, Rcode, rcode_of
from dnsproxy.forward.verification import Verification
from dnsproxy.server.zone_service import ZoneService
from dnsproxy.tap.hub import Tap

Decided = Answer | Refuse | Drop | Forward


class Responder:
    """Answers from `table`, which may be replaced at any time."""

    def __init__(self) -> None:
        self._table = HostTable()
        self._verification: Verification | None = None
        self.counters = Counters()
        self.tap = Tap(self._rule_of)
        """Shows each query to those who listen."""
        self.zones: ZoneService | None = None
        """Asked before a query is forwarded or refused."""
        self.answer_notify: Callable[[bytes], bytes | None] | None = None
        """Gives the answer to a NOTIFY, None for any other message."""
        self._quick = QuickAnswers(self._table)
        self._probe_row = probe.ROW
        self._log = structlog.get_logger("dnsproxy.server")

    @property
    def table(self) -> HostTable:
        """What is answered from."""
        return self._table

    @table.setter
    def table(self, table: HostTable) -> None:
        self._table = table
        if self._verification is not None:
            self._verification.use(table)

    def verify_with(self, verification: Verification) -> None:
        """Answer claimed names by these verdicts from now on; without them such names are forwarded."""
        self._verification = verification
        verification.use(self._table)

    def forget_recipes(self, keys: Iterable[bytes]) -> None:
        """Decide anew about the names and types with these keys: their verdicts are over."""
        self._quick.forget(keys)

    def _may_answer(self, name: bytes, rtype: int, row: Answers) -> bool:
        return self._verification is not None and self._verification.may_answer(name, rtype, row)

    def _rule_of(self, name: bytes) -> str:
        return self.table.rule_of(name)

    def report_forwards(self, forwards: str) -> None:
        """Answer probes with this text on where all other names are forwarded."""
        self._probe_row = probe.make_row(forwards)

    def answer_quickly(self, bodies: list[bytes]) -> tuple[list[bytes | None], list[Unanswered]]:
        """The bodies of the replies to plain queries, and the queries that need a second look."""
        try:
            if self._quick.table is not self._table:
                self._quick = QuickAnswers(self._table, self._may_answer)
            return self._quick.answer(bodies)
        except Exception:  # noqa: BLE001  # a bug there costs time but no answer: decide answers all queries
            self.counters.failures += 1
            self._log.exception("a batch was not answered quickly", queries=len(bodies))
            return [None] * len(bodies), [(position, b"", None) for position in range(len(bodies))]

    @property
    def forwards(self) -> QuickForwards:
        """The decisions about the queries that have a shape."""
        return self._quick.forwards

    def decide(self, message: bytes, *, keepalive: float | None = None, stream: bool) -> Decided:
        """The outcome of decide.decide for this table; a claimed name is answered if that is known to be right."""
        outcome = decide(message, self._table, stream=stream, keepalive=keepalive, probe_row=self._probe_row)
        verification = self._verification
        if verification is None:
            return outcome
        if isinstance(outcome, Forward) and outcome.claim is not None:
            outcome = verification.answer_known(outcome, stream=stream, keepalive=keepalive) or outcome
        if isinstance(outcome, Answer) and outcome.beside is not None:
            verification.look_beside(outcome.beside)
        return outcome

    def concerns_zones(self, message: bytes, outcome: Decided) -> Query | None:
        """The query, if it is for `zones`."""
        if self.zones is None or isinstance(outcome, Answer):
            return None
        return self.zones.concerns(message, outcome)

    def answer_other_opcode(self, message: bytes, outcome: Refuse) -> Refuse:
        """The answer to a NOTIFY in place of NOTIMP."""
        if outcome.rcode != Rcode.NOTIMP or self.answer_notify is None:
            return outcome
        reply = self.answer_notify(message)
        return outcome if reply is None else Refuse(reply, Rcode(rcode_of(reply)))

    def count(self, outcome: Answer | Refuse | Drop) -> bytes | None:
        """The octets to send for an outcome that needs no upstream."""
        if isinstance(outcome, Answer):
            self.counters.table_by_rcode[rcode_of(outcome.message)] += 1
            return outcome.message
        if isinstance(outcome, Refuse):
            self.counters.own_by_rcode[outcome.rcode] += 1
            return outcome.message
        self.counters.dropped += 1
        return None

    def fail(self, message: bytes) -> bytes | None:
        """Count a query that ended in an exception; the octets to send."""
        self.counters.failures += 1
        self.counters.own_by_rcode[Rcode.SERVFAIL] += 1
        self._log.exception("a query failed", octets=len(message))
        return server_failure(message)
