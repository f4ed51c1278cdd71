"""The ownership watch: looks up the public records of the hostnames that a cluster claims, in the background.

The law: a thin shell over ownership.py and its schedule, which never delays a query. An unanswered lookup changes
nothing, and an unverified name is logged once. The namespaces take turns, and lookups run side by side: a nameserver
that is slow or silent delays the names of its own namespaces. Enforced, a name is not answered before its first lookup;
so these have workers of their own, and a quick pace.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import structlog
import trio

from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.fair_queue import Turn
from dnsproxy.hostnames.lookup_slots import LookupSlots
from dnsproxy.hostnames.lookup_workers import LookupWorkers
from dnsproxy.hostnames.ownership import Finding, Mode, OwnershipSettings, Standing
from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.ownership_log import OwnershipLog
from dnsproxy.serve.ownership_lookups import OwnershipLookups, Unanswered, objects_of
from dnsproxy.serve.ownership_turns import OwnershipTurns
from dnsproxy.serve.public_records import Ask

_AT_ONCE: Final = 16
"""Lookups that run side by side: at the default pace and deadline, no more begin before the first is given up."""
_EACH: Final = 2
"""Of these, for one namespace."""
_FIRST_AT_ONCE: Final = 32
"""First lookups that run side by side. Half of them may be for one namespace, because its pods wait for them."""

log = structlog.get_logger("dnsproxy.ownership")


class OwnershipWatch:
    """Keeps a registry's findings; run() must be running."""

    def __init__(
        self,
        registry: Registry,
        *,
        settings: OwnershipSettings,
        ask: Ask,
        on_change: Callable[[], None],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._enforce = settings.mode is Mode.ENFORCE
        self._lookups = OwnershipLookups(registry, settings=settings, ask=ask, draw=draw)
        self._log = OwnershipLog(registry, settings=settings)
        self._on_change = on_change
        self._pace = settings.pace
        self._turns = OwnershipTurns(
            registry, settings=settings, draw=draw, pass_over=lambda hostname: self._settle(hostname, None)
        )
        self._suspected: dict[str, float] = {}
        """Hostnames contradicted once, and the time from which a second contradiction counts."""
        self._looking: dict[str, bool] = {}
        """Hostnames whose lookup runs, and whether they were noted meanwhile."""
        self._outdated: set[str] = set()
        """Hostnames whose last answer was discarded, until the next one or until nobody claims them."""

    @property
    def looks(self) -> Mapping[str, int]:
        """How many lookups found a record, found none, or got no answer."""
        return self._lookups.looks

    @property
    def doubted(self) -> int:
        """How many hostnames are unverified."""
        return self._log.names

    def note(self, hostnames: Iterable[str]) -> None:
        """The claims to these hostnames have changed."""
        hostnames = tuple(hostnames)
        self._looking |= dict.fromkeys(self._looking.keys() & hostnames, True)
        self._turns.note(hostnames)

    @property
    def new(self) -> int:
        """How many hostnames are new and not looked up yet."""
        return self._turns.new

    async def caught_up(self) -> None:
        """Wait until every hostname noted so far was looked up, or got no answer."""
        await self._turns.caught_up()

    async def run(self) -> None:
        """Look up hostnames until cancelled."""
        pace = self._pace
        async with trio.open_nursery() as nursery:
            if self._enforce:
                # Names of a snapshot were noted by nobody.
                await self._turns.note_all()
                first = self._workers(
                    _FIRST_AT_ONCE, _FIRST_AT_ONCE, pace.first, self._turns.next_new, self._look_first
                )
                nursery.start_soon(first.run)
            nursery.start_soon(self._workers(_AT_ONCE, _EACH, pace.gap, self._turns.next, self._look_safely).run)

    def _workers(
        self,
        most: int,
        each: int,
        gap: float,
        seek: Callable[[LookupSlots], Awaitable[Turn]],
        look: Callable[[str], Awaitable[None]],
    ) -> LookupWorkers:
        return LookupWorkers(LookupSlots(most, each=each), gap=gap, seek=seek, look=look, freed=self._turns.wake)

    async def _look_first(self, hostname: str) -> None:
        try:
            await self._look_safely(hostname)
        finally:
            self._turns.looked()

    async def _look_safely(self, hostname: str) -> None:
        if hostname in self._looking:
            return  # the running lookup serves this turn too
        self._looking[hostname] = False
        try:
            await self._look(hostname)
        except Exception:  # one lookup may fail alone: it must not end the DNS of every pod
            log.exception("the lookup of a public record failed", hostname=hostname)
        finally:
            noted = self._looking.pop(hostname)
        if noted:
            self.note([hostname])

    async def _look(self, hostname: str) -> None:
        claims = objects_of(self._registry, hostname)
        try:
            finding = await self._lookups.find(hostname)
        except Unanswered:
            if self._enforce and not self._registry.has_record(hostname):
                self._turns.again(hostname, after=self._pace.confirm)
            elif hostname in self._suspected:
                self._turns.again(hostname, after=self._pace.doubted)
        else:
            if self._is_outdated(hostname, claims):
                self.note([hostname])
            else:
                self._settle(hostname, finding)

    def _is_outdated(self, hostname: str, claims: list[Claim]) -> bool:
        """Whether the answer is for claims that have changed since; never twice in a row for one hostname.

        Otherwise a tenant that changes an object all the time would keep the verdict from the name of another.
        """
        if hostname in self._outdated or objects_of(self._registry, hostname) == claims:
            return False
        self._outdated.add(hostname)
        return True

    def _settle(self, hostname: str, finding: Finding | None) -> None:
        """Apply the result of a lookup; None contradicts no claim."""
        self._outdated.discard(hostname)
        doubted = [
            claim
            for claim in objects_of(self._registry, hostname)
            if finding is not None and self._doubts(claim, finding)
        ]
        if not doubted:
            self._suspected.pop(hostname, None)
            self._log.settled(hostname)
        elif finding is not None and self._is_confirmed(hostname):
            self._turns.again(hostname, after=self._pace.doubted)
            self._log.unverified(hostname, finding, doubted)
        elif not self._enforce or self._registry.has_record(hostname):
            return
        changed = (
            self._keep_record(hostname, finding)
            if self._enforce
            else self._registry.set_finding(hostname, finding if doubted else None)
        )
        if changed:
            self._on_change()

    def _doubts(self, claim: Claim, finding: Finding) -> bool:
        standing = self._registry.standing_of(claim, finding)
        return standing is Standing.FOREIGN or (self._enforce and standing is Standing.UNKNOWN)

    def _is_confirmed(self, hostname: str) -> bool:
        """Whether a doubt is not the first; the second look comes at its time."""
        now = trio.current_time()
        since = self._suspected.setdefault(hostname, now + self._pace.confirm)
        if now < since:
            self._turns.again(hostname, after=since - now)
        return now >= since

    def _keep_record(self, hostname: str, finding: Finding | None) -> bool:
        if not self._registry.store.claims_for(hostname):
            self._registry.forget_record(hostname)
            return False
        self.note(self._lookups.led_by(hostname, finding))
        return self._registry.set_record(hostname, finding)
