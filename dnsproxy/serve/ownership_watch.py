"""The ownership watch: looks up the public records of the hostnames that a cluster claims, in the background.

The law: a thin shell over ownership.py and its schedule, which never delays a query. An unanswered lookup changes
nothing, and an unverified name is logged once. Enforced, a name is not answered before its first lookup; so these run
side by side, at a quick pace, and the namespaces take turns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.dns import names
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.ownership import Finding, Mode, OwnershipSettings, Standing
from dnsproxy.hostnames.ownership_schedule import OwnershipSchedule
from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.ownership_log import OwnershipLog
from dnsproxy.serve.ownership_lookups import OwnershipLookups, Unanswered, objects_of, points_of
from dnsproxy.serve.public_records import LONGEST_WILDCARD, Ask
from sidecar.loop.slices import in_slices

_PASSED_OVER: Final = 500
"""Hostnames without need of a lookup that are skipped in one go, in a few milliseconds; then other tasks run."""
_AT_ONCE: Final = 32
"""First lookups that run side by side."""

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
        self._draw = draw
        self._schedule = OwnershipSchedule(settings.pace)
        self._noted = trio.Event()
        self._first_looks = 0
        self._new = trio.Event()
        self._looked = trio.Event()
        self._suspected: dict[str, float] = {}
        """Hostnames contradicted once, and the time from which a second contradiction counts."""

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
        for hostname in hostnames:
            for namespace in self._namespaces(hostname):
                self._schedule.note([hostname], namespace=namespace)
        self._noted.set()
        self._new.set()

    @property
    def new(self) -> int:
        """How many hostnames are new and not looked up yet."""
        return self._schedule.new + self._first_looks

    async def caught_up(self) -> None:
        """Wait until every hostname noted so far was looked up, or got no answer."""
        while self.new:
            await self._looked.wait()

    async def run(self) -> None:
        """Look up one hostname after the other until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._enforce:
                # Names of a snapshot were noted by nobody.
                await in_slices(self._note_all())
                nursery.start_soon(self._look_first)
            nursery.start_soon(self._look_in_turn)

    async def _look_in_turn(self) -> NoReturn:
        while True:
            self._noted = trio.Event()
            hostname = await in_slices(self._seek(trio.current_time()))
            if hostname is None:
                await trio.sleep(self._pace.rest)
                with trio.move_on_after(self._schedule.pause(trio.current_time())):
                    await self._noted.wait()
                continue
            await self._look_safely(hostname)
            await trio.sleep(self._pace.gap)

    def _note_all(self) -> Generator[None, None, None]:
        for hostname in self._registry.store.names():
            self.note([hostname])
            yield

    async def _look_first(self) -> NoReturn:
        """Look up new hostnames, several at once, without waiting for those that are looked up again."""
        slots = trio.Semaphore(_AT_ONCE)

        async def look(hostname: str) -> None:
            await self._look_safely(hostname)
            self._first_looks -= 1
            slots.release()
            self._tell_looked()

        async with trio.open_nursery() as nursery:
            while True:
                self._new = trio.Event()
                hostname = await in_slices(self._seek_new())
                if hostname is None:
                    self._tell_looked()
                    await self._new.wait()
                    continue
                self._first_looks += 1
                await slots.acquire()
                nursery.start_soon(look, hostname)
                await trio.sleep(self._pace.first)

    def _tell_looked(self) -> None:
        self._looked.set()
        self._looked = trio.Event()

    def _seek_new(self) -> Generator[None, None, str | None]:
        while (hostname := self._schedule.take_new()) is not None:
            if self._needs_lookup(hostname):
                return hostname
            self._settle(hostname, None)
            yield
        return None

    def _seek(self, now: float) -> Generator[None, None, str | None]:
        """The next hostname that needs a lookup; None if the next few do not."""
        if self._schedule.round_is_due(now):
            self._schedule.begin_round(self._registry.store.names(), now=now, random=self._draw())
        for _ in range(_PASSED_OVER):
            hostname = self._schedule.take(now)
            if hostname is None or self._needs_lookup(hostname):
                return hostname
            self._settle(hostname, None)
            yield
        return None

    def _needs_lookup(self, hostname: str) -> bool:
        if self._settings.trusts_name(hostname) or self._registry.refusal(hostname) is not None:
            return False
        if self._enforce:
            return bool(objects_of(self._registry, hostname))
        too_long = names.is_wildcard(hostname) and len(hostname) > LONGEST_WILDCARD
        return not too_long and any(points_of(self._registry, claim) for claim in objects_of(self._registry, hostname))

    def _namespaces(self, hostname: str) -> Iterable[str]:
        return dict.fromkeys(claim.origin.namespace for claim in self._registry.store.claims_for(hostname)) or ("",)

    async def _look_safely(self, hostname: str) -> None:
        try:
            await self._look(hostname)
        except Exception:  # one lookup may fail alone: it must not end the DNS of every pod
            log.exception("the lookup of a public record failed", hostname=hostname)

    async def _look(self, hostname: str) -> None:
        try:
            finding = await self._lookups.find(hostname)
        except Unanswered:
            if self._enforce and not self._registry.has_record(hostname):
                self._look_again(hostname, after=self._pace.confirm)
            elif hostname in self._suspected:
                self._look_again(hostname, after=self._pace.doubted)
        else:
            self._settle(hostname, finding)

    def _settle(self, hostname: str, finding: Finding | None) -> None:
        """Apply the result of a lookup; None contradicts no claim."""
        doubted = [
            claim
            for claim in objects_of(self._registry, hostname)
            if finding is not None and self._doubts(claim, finding)
        ]
        if not doubted:
            self._suspected.pop(hostname, None)
            self._log.settled(hostname)
        elif finding is not None and self._is_confirmed(hostname):
            self._look_again(hostname, after=self._pace.doubted)
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
            self._look_again(hostname, after=since - now)
        return now >= since

    def _keep_record(self, hostname: str, finding: Finding | None) -> bool:
        if not self._registry.store.claims_for(hostname):
            self._registry.forget_record(hostname)
            return False
        self.note(self._lookups.led_by(hostname, finding))
        return self._registry.set_record(hostname, finding)

    def _look_again(self, hostname: str, *, after: float) -> None:
        at = trio.current_time() + after
        for namespace in self._namespaces(hostname):
            self._schedule.again(hostname, at=at, namespace=namespace)
