"""The log of rejections: each once, however often its source is read again.

The law: a source of many invalid lines or objects costs a few log lines a minute. Of the new rejections of one source
and namespace the first of a minute are logged, and the number of the others; /skipped and `dnsproxy explain` have those
that are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from dnsproxy.hostnames.claims import Rejection

MOST: Final = 20
"""Logged one by one, of one source and namespace in one minute."""
MINUTE: Final = 60.0

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
    """Remembers what was logged; `now` in seconds of one clock."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._logged: set[Rejection] = set()
        self._minutes: dict[_Group, _Minute] = {}

    @property
    def due(self) -> float:
        """When the next number may be logged, if nothing is rejected before."""
        return min((one.until for one in self._minutes.values() if one.untold), default=math.inf)

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
