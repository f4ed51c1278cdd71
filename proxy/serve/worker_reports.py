"""What workers tell their supervisor, and what it makes of it.

The law: pure. A worker says what it has counted since its own start, so that a report that is lost costs nothing; what
a worker had counted that has ended stays in the sums, for a counter never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

import msgspec

from proxy.relay.counters import Counters

LONGEST_BACKOFF: Final = 5.0
"""Seconds between the end of a worker that does not live long and the next start."""
_SHORTEST_BACKOFF: Final = 0.1


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker has counted, and how many connections it may have."""

    limit: int
    counters: Counters


def format_report(report: Report) -> bytes:
    """One line."""
    return msgspec.json.encode(report) + b"\n"


def parse_report(line: bytes) -> Report:
    """What format_report wrote. Raises ValueError."""
    return msgspec.json.decode(line, type=Report)


def add_up(into: Counters, parts: Iterable[Counters]) -> None:
    """Make one the sum of others."""
    parts = list(parts)
    for field in fields(Counters):
        if field.name != "backend_errors":
            setattr(into, field.name, sum(getattr(part, field.name) for part in parts))
    for cause in into.backend_errors:
        into.backend_errors[cause] = sum(part.backend_errors.get(cause, 0) for part in parts)


def keep_of_ended(counters: Counters) -> None:
    """What stays of the counts of a worker that has ended: not what was open in it."""
    counters.active = 0


def backoff(ends: int) -> float:
    """Seconds to wait after so many ends in quick succession; the first costs little, for there may be no second."""
    return min(LONGEST_BACKOFF, _SHORTEST_BACKOFF * 2.0 ** min(ends - 1, 10))


def share_of(whole: int | None, *, workers: int) -> int | None:
    """What one worker may have, so that all together have no less than the whole."""
    return None if whole is None else -(-whole // workers)
