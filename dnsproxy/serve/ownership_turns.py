"""The turns of ownership lookups: waits for the next hostname that needs one.

The law: a thin shell over the schedule, which asks nobody and never delays a query: hostnames that need no lookup are
passed over in slices, and at leisure. Tested in test_ownership_watch.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final

import trio

from dnsproxy.dns import names
from dnsproxy.hostnames.fair_queue import Turn
from dnsproxy.hostnames.lookup_slots import LookupSlots
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.ownership_schedule import OwnershipSchedule
from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.ownership_lookups import objects_of, points_of
from dnsproxy.serve.public_records import LONGEST_WILDCARD
from sidecar.loop.slices import in_slices

_PASSED_OVER: Final = 500
"""Hostnames without need of a lookup that are skipped in one go, in a few milliseconds; then other tasks run. Of a
round, as many are queued in one go."""


class OwnershipTurns:
    """`pass_over` is called with each hostname that needs no lookup."""

    def __init__(
        self,
        registry: Registry,
        *,
        settings: OwnershipSettings,
        draw: Callable[[], float],
        pass_over: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._draw = draw
        self._pass_over = pass_over
        self._schedule = OwnershipSchedule(settings.pace)
        self._noted = trio.Event()
        self._noted_new = trio.Event()
        self._first_looks = 0
        self._looked = trio.Event()

    def note(self, hostnames: Iterable[str]) -> None:
        """The claims to these hostnames have changed."""
        for hostname in hostnames:
            for namespace in self._namespaces(hostname):
                self._schedule.note([hostname], namespace=namespace)
        self.wake()

    async def note_all(self) -> None:
        """Note every hostname of the registry."""
        await in_slices(self._note_each())

    def again(self, hostname: str, *, after: float) -> None:
        """Let the hostname have a turn after so many seconds too; replaces an earlier time."""
        at = trio.current_time() + after
        for namespace in self._namespaces(hostname):
            self._schedule.again(hostname, at=at, namespace=namespace)

    def wake(self) -> None:
        """A hostname was noted, or a slot is free again."""
        self._noted.set()
        self._noted_new.set()

    @property
    def new(self) -> int:
        """How many hostnames are new and not looked up yet."""
        return self._schedule.new + self._first_looks

    async def caught_up(self) -> None:
        """Wait until every hostname noted so far was looked up, or got no answer."""
        while self.new:
            await self._looked.wait()

    async def next(self, slots: LookupSlots) -> Turn:
        """Wait for the next hostname, of a namespace that has room in the slots."""
        while True:
            self._noted = trio.Event()
            turn = await in_slices(self._seek(trio.current_time(), slots))
            if turn is not None:
                return turn
            await trio.sleep(self._settings.pace.rest)
            with trio.move_on_after(self._schedule.pause(trio.current_time(), slots.full)):
                await self._noted.wait()

    async def next_new(self, slots: LookupSlots) -> Turn:
        """The same for new hostnames alone, without a rest; looked() must follow."""
        while True:
            self._noted_new = trio.Event()
            turn = await in_slices(self._seek_new(slots))
            if turn is not None:
                self._first_looks += 1
                return turn
            self._tell_looked()
            await self._noted_new.wait()

    def looked(self) -> None:
        """The lookup of a hostname of next_new has ended."""
        self._first_looks -= 1
        self._tell_looked()

    def _tell_looked(self) -> None:
        self._looked.set()
        self._looked = trio.Event()

    def _note_each(self) -> Generator[None, None, None]:
        for hostname in self._registry.store.names():
            self.note([hostname])
            yield

    def _seek(self, now: float, slots: LookupSlots) -> Generator[None, None, Turn | None]:
        """The next hostname that needs a lookup; None if the next few do not."""
        if self._schedule.round_is_due(now):
            self._schedule.begin_round(self._registry.store.names(), now=now, random=self._draw())
        for _ in range(_PASSED_OVER):
            if not self._schedule.enlist(self._namespaces):
                break
            yield
        for _ in range(_PASSED_OVER):
            turn = self._schedule.take(now, slots.full)
            if turn is None or self._needs_lookup(turn.hostname):
                return turn
            self._pass_over(turn.hostname)
            yield
        return None

    def _seek_new(self, slots: LookupSlots) -> Generator[None, None, Turn | None]:
        while (turn := self._schedule.take_new(slots.full)) is not None:
            if self._needs_lookup(turn.hostname):
                return turn
            self._pass_over(turn.hostname)
            yield
        return None

    def _needs_lookup(self, hostname: str) -> bool:
        if self._settings.trusts_name(hostname) or self._registry.refusal(hostname) is not None:
            return False
        if self._settings.mode is Mode.ENFORCE:
            return bool(objects_of(self._registry, hostname))
        too_long = names.is_wildcard(hostname) and len(hostname) > LONGEST_WILDCARD
        return not too_long and any(points_of(self._registry, claim) for claim in objects_of(self._registry, hostname))

    def _namespaces(self, hostname: str) -> Iterable[str]:
        return dict.fromkeys(claim.origin.namespace for claim in self._registry.store.claims_for(hostname)) or ("",)
