"""The probes and handshakes under way, and what the last ones showed.

The law: each runs alone in a task of the nursery and ends within its deadlines. One starts only if it runs at once
(turns.py); the others stay due, so no task ever waits. The times and results of what is gone are forgotten, those of an
endpoint after a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

import structlog
import trio

from dnsproxy.doctor.judge.header_mode import CLEAR
from dnsproxy.operate.decide.decisions import Decision, through
from dnsproxy.operate.decide.facts import Facts, Handshake, Place, Probed, Subject
from dnsproxy.operate.decide.handshaking import (
    HeadersSince,
    LastHandshake,
    RelayHandshake,
    after_handshake,
    due_handshakes,
    is_first,
    note_handshake,
    note_headers,
    still_count,
)
from dnsproxy.operate.decide.inheritance import (
    FirstSights,
    inherited_balancers,
    inherited_handshakes,
    inherited_probes,
    note_places,
)
from dnsproxy.operate.decide.probing import (
    BalancerProbe,
    EndpointProbe,
    LastProbe,
    due_balancers,
    due_probes,
    note_probe,
    still_known,
    suspect,
)
from dnsproxy.operate.decide.turns import choose_balancers, choose_handshakes, choose_probes
from dnsproxy.operate.probe.endpoint_probe import probe_endpoint, reach_balancer
from dnsproxy.operate.probe.relay_handshake import shake_hands
from dnsproxy.operate.report.steering_status import SteeringStatus

log = structlog.get_logger("dnsproxy.operate")


class ProbingTasks:
    """Starts what is due; `on_change` is called after each result."""

    def __init__(self, nursery: trio.Nursery, status: SteeringStatus, on_change: Callable[[], None]) -> None:
        self._nursery = nursery
        self._status = status
        self._on_change = on_change
        self._probed: dict[Place, Probed] = {}
        self._last: dict[Place, LastProbe] = {}
        self._handshakes: dict[Subject, Handshake] = {}
        self._last_handshakes: dict[Subject, LastHandshake] = {}
        self._probing: dict[Place, bool] = {}
        """The probes under way, and whether each is in turn."""
        self._reaching: set[str] = set()
        """The Services whose load balancers are being dialled."""
        self._shaking: dict[Subject, str] = {}
        """The backends of the handshakes under way."""
        self._first_sights = FirstSights()
        self._headers: dict[Subject, HeadersSince] = {}
        self._balancers: dict[str, bool] = {}
        self._last_balancers: dict[str, float] = {}
        self._suspected: dict[str, float] = {}
        """By Service: when an endpoint reacted otherwise than before, or a handshake failed that had succeeded."""
        self._relay: tuple[str, ...] = ()
        self._relay_since = -inf

    def known(self, facts: Facts) -> Facts:
        """The facts with what was seen of their endpoints and relays."""
        now = trio.current_time()
        self._first_sights = note_places(self._first_sights, facts, now=now)
        self._headers = note_headers(self._headers, facts, now=now)
        self._last = still_known(self._last, facts, now=now)
        self._probed = {place: one for place, one in self._probed.items() if place in self._last}
        self._suspected = {key: at for key, at in self._suspected.items() if key in facts.services}
        self._balancers = {key: one for key, one in self._balancers.items() if key in facts.services}
        self._last_balancers = {key: at for key, at in self._last_balancers.items() if key in facts.services}
        self._handshakes = still_count(self._handshakes, facts)
        self._last_handshakes = still_count(self._last_handshakes, facts)
        if facts.relay_endpoints != self._relay:
            self._relay, self._relay_since = facts.relay_endpoints, now
        return replace(
            facts,
            probes=dict(self._probed),
            handshakes=dict(self._handshakes),
            balancers=dict(self._balancers),
        )

    def forget(self) -> None:
        """Forget everything: another replica leads, and what was seen here gets old."""
        self._probed.clear()
        self._last.clear()
        self._handshakes.clear()
        self._last_handshakes.clear()
        self._balancers.clear()
        self._last_balancers.clear()
        self._suspected.clear()

    def start_due(self, facts: Facts, decisions: tuple[Decision, ...], *, others_until: float = -inf) -> None:
        """Start what is due and may run now; `others_until`: until when another replica may have probed."""
        now = trio.current_time()
        last = {**inherited_probes(self._first_sights, until=others_until), **self._last}
        for probe in choose_probes(due_probes(facts, last, now=now, suspected=self._suspected), last, self._probing):
            # At once, so that it is not due again while it is under way.
            noted = note_probe(self._last.get(probe.place), probe, now=now)
            last[probe.place] = self._last[probe.place] = noted
            self._probing[probe.place] = probe.in_turn
            self._nursery.start_soon(self._probe, probe)
        self._start_balancers(facts, {**inherited_balancers(last), **self._last_balancers}, now)
        handshakes = inherited_handshakes(facts, self._headers, until=others_until, now=now)
        self._start_handshakes(facts, decisions, {**handshakes, **self._last_handshakes}, now)

    def _start_balancers(self, facts: Facts, last: Mapping[str, float], now: float) -> None:
        for balancer in choose_balancers(due_balancers(facts, last, now=now), last, self._reaching):
            self._last_balancers[balancer.service] = now
            self._reaching.add(balancer.service)
            self._nursery.start_soon(self._reach, balancer)

    def _start_handshakes(
        self, facts: Facts, decisions: tuple[Decision, ...], last: Mapping[Subject, LastHandshake], now: float
    ) -> None:
        due = due_handshakes(
            facts,
            decisions,
            last,
            now=now,
            relay_since=self._relay_since,
            headers=self._headers,
            under_way=frozenset(self._shaking.values()),
        )
        for handshake in choose_handshakes(due, last, self._shaking):
            self._shaking[handshake.subject] = handshake.relay_to
            every_pod = is_first(handshake, facts)
            self._nursery.start_soon(self._shake, handshake, facts.relay_endpoints, every_pod)

    def _suspect(self, service: str, at: float) -> None:
        self._suspected[service] = suspect(self._suspected.get(service, -inf), at)

    async def _probe(self, wanted: EndpointProbe) -> None:
        try:
            found = await probe_endpoint(wanted)
        finally:
            del self._probing[wanted.place]
        self._status.probes[found.mode] += 1
        before = self._probed.get(wanted.place)
        changed = before is not None and {before.mode, found.mode} <= CLEAR and before.mode is not found.mode
        if wanted.place in self._last:
            self._probed[wanted.place] = found
            if changed and wanted.in_turn:
                # What others showed before that is out of date.
                self._suspect(wanted.place[0], self._last[wanted.place].at)
        if before is None or before.mode is not found.mode:
            key, port, endpoint = wanted.place
            log.info("probed", service=key, port=port, endpoint=str(endpoint), mode=found.mode.value, seen=found.detail)
        # Always: another one may be due that had no room.
        self._on_change()

    async def _reach(self, wanted: BalancerProbe) -> None:
        try:
            reached = await reach_balancer(wanted)
        finally:
            self._reaching.discard(wanted.service)
        if self._balancers.get(wanted.service) is not reached:
            log.info("load balancer dialled", service=wanted.service, answered=reached)
            self._balancers[wanted.service] = reached
            self._on_change()

    async def _shake(self, wanted: RelayHandshake, pods: tuple[str, ...], every_pod: bool) -> None:
        try:
            answered = await shake_hands(wanted, pods, every_pod=every_pod)
        finally:
            del self._shaking[wanted.subject]
        self._status.handshakes[answered.succeeded] += 1
        before = through(
            self._handshakes.get(wanted.subject),
            Handshake(wanted.relay_to, uid=wanted.uid, headers=wanted.headers),
        )
        self._last_handshakes = note_handshake(self._last_handshakes, wanted, answered, now=trio.current_time())
        untaken = self._last_handshakes[wanted.subject].untaken
        after = self._handshakes[wanted.subject] = after_handshake(before, answered, untaken=untaken)
        if (before.succeeded or wanted.steered) and not before.failures and answered.taken and not answered.succeeded:
            self._suspect(wanted.relay_to, trio.current_time())
        if (before.succeeded, before.failures) != (after.succeeded, after.failures):
            shown = "succeeded" if answered.succeeded else "failed"
            log.info(f"handshake {shown}", subject=str(wanted.subject), relay_to=wanted.relay_to, seen=answered.detail)
        self._on_change()
