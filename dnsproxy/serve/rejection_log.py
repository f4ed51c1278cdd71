"""The log of rejections: each once, however often its source is read again.

The law: a source of many invalid lines or objects costs a few log lines. Of the new rejections of one source and
namespace the first are logged, and the number of the others; /skipped and `dnsproxy explain` have those that are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from typing import Final

import structlog

from dnsproxy.hostnames.claims import Rejection

MOST: Final = 20
"""Logged one by one, of one source and namespace in one pass."""

log = structlog.get_logger("dnsproxy")


class RejectionLog:
    """Remembers what was logged."""

    def __init__(self) -> None:
        self._logged: set[Rejection] = set()

    def write(self, rejections: Iterable[Rejection]) -> Generator[None, None, None]:
        """Log those that are new among the current rejections; one step per rejection."""
        current: set[Rejection] = set()
        counts: Counter[tuple[str, str]] = Counter()
        for rejection in list(rejections):
            current.add(rejection)
            if rejection not in self._logged:
                self._logged.add(rejection)
                self._write(rejection, counts)
            yield
        self._logged &= current
        for (kind, namespace), count in counts.items():
            if count > MOST:
                place = {"namespace": namespace} if namespace else {}
                log.warning("more are rejected", kind=kind, **place, count=count - MOST)

    def _write(self, rejection: Rejection, counts: Counter[tuple[str, str]]) -> None:
        origin, reason = rejection.origin, rejection.reason
        if rejection.deliberate:
            log.debug("rejected", origin=str(origin), reason=reason)
            return
        group = origin.kind, origin.namespace
        counts[group] += 1
        if counts[group] <= MOST:
            log.warning("rejected", origin=str(origin), reason=reason)
