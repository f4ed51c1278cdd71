"""The zone follower: keeps a zone up to date from the first of its primaries that answers.

The law: what was fetched stays until something newer was fetched whole, whatever the primaries do. A difference that
does not fit is followed by a whole transfer. A fault is logged when it begins and when it ends.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import structlog
import trio

from dnsproxy.secondary.fetch import Current, FetchFailed, Wanted, fetch
from dnsproxy.secondary.pacing import LookPacing
from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.reading import Transfer, TransferRefused
from dnsproxy.zone.serials import is_newer

Take = Callable[[Transfer], Awaitable[None]]
"""Takes a transfer over. Raises TransferRefused, and has then changed nothing."""


@dataclass(slots=True)
class ZoneStatus:
    """The status of a followed zone; times of trio's clock."""

    serial: int | None = None
    primary: str = ""
    """The primary that answered last."""
    confirmed: float | None = None
    """When a primary last said that this is its newest version; None before the first time."""
    confirmed_time: float | None = None
    """The same as seconds since the epoch."""
    fault: str = ""
    """Why no primary gives an answer now."""
    transfers: int = 0
    failures: int = 0


class ZoneFollower:
    """Follows one zone. `take` takes each transfer over; `on_current`: the zone is as new as the primary's."""

    def __init__(
        self,
        primaries: Sequence[RpzSource],
        wanted: Wanted,
        *,
        take: Take,
        on_current: Callable[[], None] = lambda: None,
    ) -> None:
        self.status = ZoneStatus(wanted.serial)
        self._primaries = list(primaries)
        self._answered: RpzSource | None = None
        self._wanted = wanted
        self._take = take
        self._on_current = on_current
        self._pacing = LookPacing()
        self._notified = trio.Event()
        self._log = structlog.get_logger("dnsproxy.replica")

    def restore(self, serial: int) -> None:
        """Begin with a version that is known already."""
        self.status.serial = serial

    def set_primaries(self, primaries: Sequence[RpzSource]) -> None:
        """Ask these from now on, at once."""
        if list(primaries) != self._primaries:
            self._primaries = list(primaries)
            self._notified.set()

    def notify(self, serial: int | None) -> None:
        """A NOTIFY came, perhaps with the new serial."""
        known = self.status.serial
        if serial is None or known is None or is_newer(serial, known):
            self._notified.set()

    async def run(self) -> NoReturn:
        """Follow until cancelled."""
        notified = False
        while True:
            was_new = await self._look()
            now = trio.current_time()
            if was_new is None:
                self._pacing.after_failure(now=now, notified=notified)
            else:
                self._pacing.after_success(now=now, was_new=was_new, notified=notified)
            notified = await self._wait(now)

    async def _wait(self, now: float) -> bool:
        """Wait for the next look; whether a NOTIFY brings it."""
        # Not all replicas at one time.
        jitter = random.uniform(0.9, 1.0)  # noqa: S311
        with trio.move_on_at(now + (self._pacing.next_look - now) * jitter):
            await self._notified.wait()
        notified = self._notified.is_set()
        if notified:
            await trio.sleep_until(min(self._pacing.notified_look(now=trio.current_time()), self._pacing.next_look))
        self._notified = trio.Event()
        return notified

    async def _look(self) -> bool | None:
        """Whether something new came; None if no primary gave an answer."""
        failures: list[str] = []
        # Beginning with the one that answered last: a dead one in front of it would cost seconds each time.
        for primary in sorted(self._primaries, key=lambda one: one != self._answered):
            try:
                was_new = await self._look_at(primary)
            except (FetchFailed, TransferRefused) as error:
                self.status.failures += 1
                failures.append(f"{primary}: {error}")
            else:
                self._answered = primary
                self._note_answer(str(primary))
                return was_new
        self._note_fault("; ".join(failures) or "no primary is known")
        return None

    async def _look_at(self, primary: RpzSource) -> bool:
        """Raises FetchFailed and TransferRefused."""
        wanted = replace(self._wanted, serial=self.status.serial)
        try:
            found = await fetch(primary, wanted)
            if isinstance(found, Current):
                return self._keep(found)
            await self._take(found)
        except TransferRefused:
            if wanted.serial is None:
                raise
            found = await self._fetch_whole(primary, wanted)
        self.status.serial = found.serial
        self.status.transfers += 1
        return True

    async def _fetch_whole(self, primary: RpzSource, wanted: Wanted) -> Transfer:
        """The whole zone, taken over. Raises FetchFailed and TransferRefused."""
        found = await fetch(primary, replace(wanted, serial=None))
        if isinstance(found, Current) or (wanted.serial is not None and not is_newer(found.serial, wanted.serial)):
            raise FetchFailed(f"its whole zone has serial {found.serial}, and {wanted.serial} is known here")
        await self._take(found)
        return found

    def _keep(self, found: Current) -> bool:
        """Raises FetchFailed for an older version: another primary may have the newest one."""
        if found.serial != self.status.serial:
            raise FetchFailed(f"it has serial {found.serial}, which is older than {self.status.serial}")
        return False

    def _note_answer(self, primary: str) -> None:
        status = self.status
        if status.fault:
            self._log.info("a primary answers again", primary=primary, serial=status.serial)
            status.fault = ""
        status.primary = primary
        status.confirmed, status.confirmed_time = trio.current_time(), time.time()
        self._on_current()

    def _note_fault(self, fault: str) -> None:
        if fault != self.status.fault:
            self._log.warning("no primary gives the table; the last one stays", cause=fault)
        self.status.fault = fault
