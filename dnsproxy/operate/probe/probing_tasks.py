"""The probes and handshakes under way, and what the last ones showed.

The law: each runs alone in a task of the nursery, at most TOGETHER at once, and ends within its deadlines. The times
and results of what is gone are forgotten. One that was cut off counts as not made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Final

import structlog
import trio

from dnsproxy.doctor.judge.header_mode import HeaderMode
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
from dnsproxy.operate.decide.probing import BalancerProbe, EndpointProbe, LastProbe, due_balancers, due_probes
from dnsproxy.operate.probe.endpoint_probe import probe_endpoint, reach_balancer
from dnsproxy.operate.probe.relay_handshake import shake_hands
from dnsproxy.operate.report.steering_status import SteeringStatus

TOGETHER: Final = 16
_CLEAR: Final = frozenset([HeaderMode.REQUIRES, HeaderMode.ACCEPTS, HeaderMode.REJECTS])

log = structlog.get_logger("dnsproxy.operate")


class ProbingTasks:
    """Starts what is due; `on_change` is called after each result."""

    def __init__(self, nursery: trio.Nursery, status: SteeringStatus, on_change: Callable[[], None]) -> None:
        self._nursery = nursery
        self._status = status
        self._on_change = on_change
        self._limiter = trio.CapacityLimiter(TOGETHER)
        self._probed: dict[Place, Probed] = {}
        self._last: dict[Place, LastProbe] = {}
        self._handshakes: dict[Subject, Handshake] = {}
        self._last_handshakes: dict[Subject, LastHandshake] = {}
        self._shaking: set[Subject] = set()
        self._headers: dict[Subject, HeadersSince] = {}
        self._balancers: dict[str, bool] = {}
        self._last_balancers: dict[str, float] = {}
        self._suspected: dict[str, float] = {}
        """By Service: when a handshake with it failed after one had succeeded."""
        self._relay: tuple[str, ...] = ()
        self._relay_since = -inf

    def known(self, facts: Facts) -> Facts:
        """The facts with what was seen of their endpoints and relays."""
        places = {
            (key, port, endpoint)
            for key, one in facts.services.items()
            for port, found in (*(one.endpoints or {}).items(), *one.leaving.items())
            for endpoint in found
        }
        self._probed = {place: one for place, one in self._probed.items() if place in places}
        self._last = {place: one for place, one in self._last.items() if place in places}
        self._suspected = {key: at for key, at in self._suspected.items() if key in facts.services}
        self._handshakes = still_count(self._handshakes, facts)
        self._last_handshakes = still_count(self._last_handshakes, facts)
        if facts.relay_endpoints != self._relay:
            self._relay, self._relay_since = facts.relay_endpoints, trio.current_time()
        return replace(
            facts,
            probes=dict(self._probed),
            handshakes=dict(self._handshakes),
            balancers={key: one for key, one in self._balancers.items() if key in facts.services},
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

    def start_due(self, facts: Facts, decisions: tuple[Decision, ...]) -> None:
        """Start every probe and handshake that is due."""
        now = trio.current_time()
        for probe in due_probes(facts, self._last, now=now, suspected=self._suspected):
            # At once, so that it is not due again while it is under way.
            self._last[probe.place] = LastProbe(now, probe.in_turn)
            self._nursery.start_soon(self._probe, probe, now)
        for balancer in due_balancers(facts, self._last_balancers, now=now):
            self._last_balancers[balancer.service] = now
            self._nursery.start_soon(self._reach, balancer)
        self._headers = note_headers(self._headers, facts, now=now)
        due = due_handshakes(
            facts, decisions, self._last_handshakes, now=now, relay_since=self._relay_since, headers=self._headers
        )
        for handshake in due:
            if handshake.subject not in self._shaking:
                self._shaking.add(handshake.subject)
                every_pod = is_first(handshake, facts)
                self._nursery.start_soon(self._shake, handshake, facts.relay_endpoints, every_pod)

    async def _probe(self, wanted: EndpointProbe, begun: float) -> None:
        async with self._limiter:
            found = await probe_endpoint(wanted)
        self._status.probes[found.mode] += 1
        before = self._probed.get(wanted.place)
        changed = before is not None and {before.mode, found.mode} <= _CLEAR and before.mode is not found.mode
        if wanted.place in self._last:
            self._probed[wanted.place] = found
            self._last[wanted.place] = LastProbe(begun, wanted.in_turn, changed)
        if before is None or before.mode is not found.mode:
            key, port, endpoint = wanted.place
            log.info("probed", service=key, port=port, endpoint=str(endpoint), mode=found.mode.value, seen=found.detail)
        if before != found or changed:
            self._on_change()

    async def _reach(self, wanted: BalancerProbe) -> None:
        async with self._limiter:
            reached = await reach_balancer(wanted)
        if self._balancers.get(wanted.service) is not reached:
            log.info("load balancer dialled", service=wanted.service, answered=reached)
            self._balancers[wanted.service] = reached
            self._on_change()

    async def _shake(self, wanted: RelayHandshake, pods: tuple[str, ...], every_pod: bool) -> None:
        try:
            async with self._limiter:
                answered = await shake_hands(wanted, pods, every_pod=every_pod)
        finally:
            self._shaking.discard(wanted.subject)
        self._status.handshakes[answered.succeeded] += 1
        before = through(
            self._handshakes.get(wanted.subject),
            Handshake(wanted.relay_to, uid=wanted.uid, headers=wanted.headers),
        )
        self._last_handshakes = note_handshake(self._last_handshakes, wanted, answered, now=trio.current_time())
        untaken = self._last_handshakes[wanted.subject].untaken
        after = self._handshakes[wanted.subject] = after_handshake(before, answered, untaken=untaken)
        if before.succeeded and not before.failures and answered.taken and not answered.succeeded:
            self._suspected[wanted.relay_to] = trio.current_time()
        if (before.succeeded, before.failures) != (after.succeeded, after.failures):
            shown = "succeeded" if answered.succeeded else "failed"
            log.info(f"handshake {shown}", subject=str(wanted.subject), relay_to=wanted.relay_to, seen=answered.detail)
        self._on_change()
