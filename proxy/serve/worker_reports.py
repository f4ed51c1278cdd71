"""The reports of workers to their supervisor, and their sums; and the connections that ended, while someone listens.

The law: pure. A worker reports totals since its start, so a lost report costs nothing. The totals of an ended worker
stay in the sums, because a counter never decreases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Final

import msgspec

from proxy.relay.counters import Counters
from proxy.tap.ended import Ended

LONGEST_BACKOFF: Final = 5.0
"""Seconds, at most, between the end of a short-lived worker and its restart."""
_SHORTEST_BACKOFF: Final = 0.1


@dataclass(frozen=True, slots=True)
class Report:
    """The connection limit and the counters of a worker, and its routes from Services."""

    limit: int
    counters: Counters
    waits: str | None = None
    """Why the worker does not know its routes yet."""
    failures: dict[int, str] = field(default_factory=dict)
    """The ports that the worker could not open, and why."""


class EndedBatch(msgspec.Struct, frozen=True, array_like=True):
    """Connections of a worker that have ended."""

    dropped: int
    """How many more have ended than the worker had room for."""
    events: list[Ended]


LISTEN: Final = b"+"
"""What the supervisor sends to a worker, after the settings: send the connections that end."""
IGNORE: Final = b"-"
"""No longer send them."""


def format_ended(events: list[Ended], dropped: int) -> bytes:
    """A batch as one line of JSON; an array, in contrast to a report."""
    return msgspec.json.encode(EndedBatch(dropped, events)) + b"\n"


def parse_line(line: bytes) -> Report | EndedBatch:
    """Read a line of format_report or format_ended. Raises ValueError."""
    return msgspec.json.decode(line, type=EndedBatch) if line.startswith(b"[") else parse_report(line)


def format_report(report: Report) -> bytes:
    """The report as one line of JSON."""
    return msgspec.json.encode(report) + b"\n"


def parse_report(line: bytes) -> Report:
    """Read a line of format_report. Raises ValueError."""
    return msgspec.json.decode(line, type=Report)


def add_up(into: Counters, parts: Iterable[Counters]) -> None:
    """Set `into` to the sum of the parts."""
    parts = list(parts)
    for one in fields(Counters):
        if one.name != "backend_errors":
            setattr(into, one.name, sum(getattr(part, one.name) for part in parts))
    for cause in into.backend_errors:
        into.backend_errors[cause] = sum(part.backend_errors.get(cause, 0) for part in parts)


def keep_totals(counters: Counters) -> None:
    """Keep the totals of an ended worker; its open connections are gone."""
    counters.active = 0


def backoff(ends: int) -> float:
    """Seconds to wait before the next start, after this number of ends in quick succession."""
    return min(LONGEST_BACKOFF, _SHORTEST_BACKOFF * 2.0 ** min(ends - 1, 10))


def share_of(whole: int | None, *, workers: int) -> int | None:
    """The share of one worker, rounded up, so that the shares add up to at least the whole."""
    return None if whole is None else -(-whole // workers)
