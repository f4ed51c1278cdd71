"""The log of rejections: each once, however often its source is read again.

The law: what is rejected while the server runs is logged within seconds, whether a list or a single object has it. A
source of many invalid lines or objects costs a few log lines a minute: of the new rejections of one source and
namespace the first of a minute are logged, and the number of the others; /skipped and `dnsproxy explain` have those
that are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Rejection
from sidecar.loop.slices import in_slices

MOST: Final = 20
"""Logged one by one, of one source and namespace in one minute."""
MINUTE: Final = 60.0
LOOK: Final = 5.0
"""Seconds between two looks for rejections, which change with single objects too."""

_Group = tuple[str, str]
"""A kind and a namespace."""

log = structlog.get_logger("dnsproxy")


@dataclass(slots=True)
class _Minute:
    """The new rejections of one group within a minute of the first."""

    until: float
    logged: int = 0
    untold: int = 0
    told: bool = False
    """Whether a number was logged in this minute."""


class RejectionLog:
    """Remembers what was logged of a store; `now` in seconds of one clock."""

    def __init__(self, store: ClaimStore, *, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._version = -1
        """That of the rejections that were written last."""
        self._writing = trio.Lock()
        self._woken = trio.Event()
        self._logged: set[Rejection] = set()
        self._minutes: dict[_Group, _Minute] = {}

    @property
    def due(self) -> float:
        """When the next number may be logged, if nothing is rejected before."""
        return min((one.until for one in self._minutes.values() if one.untold), default=math.inf)

    def wake(self) -> None:
        """Look now: a list was read."""
        self._woken.set()

    async def run(self) -> None:
        """Log what is rejected until cancelled."""
        while True:
            with trio.move_on_after(LOOK):
                await self._woken.wait()
            self._woken = trio.Event()
            await self.look()

    async def look(self) -> None:
        """Log what is new now."""
        # A store may have 100,000 rejections; they are only read if they have changed.
        async with self._writing:
            if self._store.rejections_version != self._version or self.due <= self._now():
                self._version = self._store.rejections_version
                await in_slices(self.write(self._store.rejections()))

    def write(self, rejections: Iterable[Rejection]) -> Generator[None, None, None]:
        """Log those that are new among the current rejections; one step per rejection."""
        self._end_minutes()
        current: set[Rejection] = set()
        for rejection in list(rejections):
            current.add(rejection)
            if rejection not in self._logged:
                self._logged.add(rejection)
                self._write(rejection)
            yield
        self._logged &= current
        for group, minute in self._minutes.items():
            if minute.untold and not minute.told:
                _tell(group, minute)

    def _write(self, rejection: Rejection) -> None:
        origin, reason = rejection.origin, rejection.reason
        if rejection.deliberate:
            log.debug("rejected", origin=str(origin), reason=reason)
            return
        group = origin.kind, origin.namespace
        minute = self._minutes.get(group)
        if minute is None:
            minute = self._minutes[group] = _Minute(self._now() + MINUTE)
        if minute.logged < MOST:
            minute.logged += 1
            log.warning("rejected", origin=str(origin), reason=reason)
        else:
            minute.untold += 1

    def _end_minutes(self) -> None:
        """Drop the minutes that are over, and log the numbers that are not logged yet."""
        now = self._now()
        over = {group: minute for group, minute in self._minutes.items() if minute.until <= now}
        for group, minute in over.items():
            del self._minutes[group]
            if minute.untold:
                _tell(group, minute)


def _tell(group: _Group, minute: _Minute) -> None:
    kind, namespace = group
    place = {"namespace": namespace} if namespace else {}
    log.warning("more are rejected", kind=kind, **place, count=minute.untold)
    minute.untold, minute.told = 0, True
