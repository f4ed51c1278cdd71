"""The completion of flights: each ends with a reply or SERVFAIL, which every waiting client gets.

The law: a flight ends once, and frees everything that it held. Replies are posted while a batch is processed and leave
in flush(). Tested in tests/dnsproxy/forward/test_forwarder.py and test_forwarder_sharing.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import partial

import structlog
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.datagrams.port import DatagramPort
from dnsproxy.dns.wire import NETWORK_ERROR, NO_REACHABLE_AUTHORITY, rcode_of
from dnsproxy.forward import replies
from dnsproxy.forward.admission import Admission, Failures
from dnsproxy.forward.flight import Flight, Recipient
from dnsproxy.forward.flight_shown import exchange_of, show_flight
from dnsproxy.forward.verification import Verification
from dnsproxy.replace.verdicts import Verdict
from dnsproxy.tap.hub import Tap
from dnsproxy.tap.seen import Outcome
from sidecar.values.endpoints import Endpoint


class Completion:
    """Holds the flights, by key, in the order of their start, and ends them."""

    def __init__(
        self, *, admission: Admission, failures: Failures, verification: Verification, counters: Counters, tap: Tap
    ) -> None:
        self.flights: dict[bytes, Flight] = {}
        self.now = 0.0
        """The time of the batch that is processed; 0 between batches."""
        self._admission = admission
        self._failures = failures
        self._verification = verification
        self.nursery: trio.Nursery | None = None
        """Where the other family of a claimed name is asked: the callbacks of the poller cannot start tasks."""
        self._counters = counters
        self._tap = tap
        self._answered: dict[DatagramPort, None] = {}
        self._started: list[float] = []
        """When the flights started that have ended since the last flush()."""
        self._emptied = trio.Event()
        self._log = structlog.get_logger("dnsproxy.forwarder")

    async def wait_empty(self) -> None:
        """Wait until there is no flight."""
        while self.flights:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()

    def complete(self, flight: Flight, reply: bytes, source: Endpoint, *, datagram: bool = True) -> None:
        """End with the reply of the upstream at `source`, over UDP or a stream."""
        if not flight.is_open:
            return
        try:
            claim, verdict = flight.forward.claim, None
            if claim is not None:
                verdict = self._verification.note_reply(flight.query, claim, reply)
                if verdict is None and self.nursery is not None:
                    flight.looking, flight.due = True, math.inf
                    self.nursery.start_soon(partial(self._look_at_other, flight, reply, source, datagram=datagram))
                    return
            self._judged(flight, reply, source, verdict, datagram=datagram)
        except Exception:  # noqa: BLE001  # a bug costs one query: raising here would end the loop that serves all clients
            self._fail(flight, reply)

    async def _look_at_other(self, flight: Flight, reply: bytes, source: Endpoint, *, datagram: bool) -> None:
        """End by what the other family of addresses says."""
        claim = flight.forward.claim
        try:
            verdict = None
            if claim is not None:
                with trio.move_on_at(flight.give_up):
                    verdict = await self._verification.look_at_other(flight.query, claim)
            if verdict is None:
                self.give_up(flight)
            else:
                self._judged(flight, reply, source, verdict, datagram=datagram)
        except Exception:  # noqa: BLE001  # as above
            self._fail(flight, reply)
        self.flush()

    def _judged(
        self, flight: Flight, reply: bytes, source: Endpoint, verdict: Verdict | None, *, datagram: bool
    ) -> None:
        limit = replies.client_limit(flight.query)
        passed, outcome = self._verification.pass_on(flight.forward, reply, verdict, stream=False, limit=limit)
        flight.forget()
        counts = self._counters.table_by_rcode if outcome is Outcome.TABLE else self._counters.upstream_by_rcode
        counts[rcode_of(passed)] += flight.waiters
        self._end(flight, passed, reply, source, outcome, datagram=datagram)

    def _fail(self, flight: Flight, reply: bytes) -> None:
        self._counters.failures += 1
        self._log.exception("a reply failed", octets=len(reply))
        if not flight.done:
            self.give_up(flight)

    def complete_unchanged(self, flight: Flight, reply: bytes, source: Endpoint) -> None:
        """As complete, for a datagram that is_usual and may pass, in less time."""
        # The socket on which the reply arrived has forgotten the flight.
        if flight.asked > 1 or flight.streamed:
            flight.forget()
        self._counters.upstream_by_rcode[rcode_of(reply)] += flight.waiters
        self._end(flight, flight.recipient[2] + reply[2:], reply, source, Outcome.UPSTREAM, datagram=True)

    def _end(
        self, flight: Flight, passed: bytes, reply: bytes, source: Endpoint, outcome: Outcome, *, datagram: bool
    ) -> None:
        if self._tap.listening:
            now = self.now or trio.current_time()
            exchange = exchange_of(flight, reply, source, datagram=datagram, now=now)
            show_flight(self._tap, flight, passed, outcome, exchange, now=now)
        self._finish(flight, passed)

    def give_up(self, flight: Flight) -> None:
        """End with SERVFAIL; a claimed name with the answer of its row."""
        self._counters.forward_timeouts += 1
        flight.count_miss()
        flight.forget()
        own = self._verification.answer_without_reply(flight.forward, stream=False)
        if own is not None:
            self._counters.table_by_rcode[rcode_of(own)] += flight.waiters
            if self._tap.listening:
                show_flight(self._tap, flight, own, Outcome.TABLE, None, now=trio.current_time())
            self._finish(flight, own)
            return
        self._failures.add(flight.key, trio.current_time())
        error = NETWORK_ERROR if flight.unreachable else NO_REACHABLE_AUTHORITY
        reply = replies.fail(flight.query, error, counters=self._counters, times=flight.waiters)
        if self._tap.listening:
            show_flight(self._tap, flight, reply, Outcome.FAILED, None, now=trio.current_time())
        self._finish(flight, reply)

    def flush(self) -> None:
        """Send the posted replies."""
        for port in self._answered:
            port.flush()
        self._answered.clear()
        if self._started:
            self._observe(self.now or trio.current_time())
        self.now = 0.0

    def _observe(self, now: float) -> None:
        """Count the times of the flights that have ended: many of them have started in one batch."""
        for started, times in Counter(self._started).items():
            self._counters.forward_seconds.observe(now - started, times=times)
        self._started.clear()

    def _finish(self, flight: Flight, reply: bytes) -> None:
        del self.flights[flight.key]
        flight.done = True
        if not self.flights:
            self._emptied.set()
        self._started.append(flight.started)
        port, sender, _ = flight.recipient
        self._admission.release(sender[2])
        port.post(reply, sender)
        self._answered[port] = None
        if flight.others:
            self._answer_others(flight.others, reply)

    def _answer_others(self, others: Iterable[Recipient], reply: bytes) -> None:
        for port, sender, message_id in others:
            self._admission.release(sender[2])
            port.post(message_id + reply[2:], sender)
            self._answered[port] = None
