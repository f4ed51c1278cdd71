"""When a change may be written: at once, after a failure, or against a writer that undoes it again and again.

The law: a change is not sent twice for one reading of the Service: what was read may be older than the write. A failed
write is repeated after RETRY; an undone one is made at once a few times, and then ever more rarely.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from dnsproxy.operate.decide.facts import Route
from dnsproxy.operate.decide.plan import Change, Create, Delete, Patch
from sidecar.values.write_backoff import Backoff, lost, stood, wait_of

RETRY: Final = 10.0
"""Seconds after a write that failed."""
READ: Final = 5.0
"""Seconds within which a watch shows what was written."""


@dataclass(frozen=True, slots=True)
class WritePace:
    """What was written of one Service; times are seconds of one clock."""

    wish: Route
    """What it was to be; its name alone for a deletion."""
    over: str
    """The resourceVersion that the last write was made over; empty for a creation."""
    read_by: float
    """Until when a reading may still show that version."""
    due: float
    """No write before this time."""
    backoff: Backoff = field(default_factory=Backoff)


def wish_of(change: Change) -> Route:
    """What the Service shall be, whatever was read of it, and whenever it was released."""
    route = change.route
    if isinstance(change, Delete):
        return Route(route.name)
    return replace(route, resource_version="", released="set" if route.released else "")


def version_of(change: Change) -> str:
    """The resourceVersion that was read; empty if the Service did not exist."""
    match change:
        case Create():
            return ""
        case Patch(before):
            return before.resource_version
        case Delete(route):
            return route.resource_version


def before_write(pace: WritePace | None, change: Change, *, now: float) -> WritePace:
    """The pace for a change that is wanted now; it may be written if `due` is not later than `now`."""
    wish, version = wish_of(change), version_of(change)
    if pace is None:
        return WritePace(wish, version, now, now)
    if version == pace.over and now < pace.read_by:
        return replace(pace, due=pace.read_by)
    if wish != pace.wish:
        return WritePace(wish, version, now, min(pace.due, now), pace.backoff)
    if pace.backoff.stands_since is None:
        return pace
    backoff = lost(pace.backoff, now)
    return replace(pace, backoff=backoff, due=now + wait_of(backoff))


def after_success(pace: WritePace, change: Change, *, now: float) -> WritePace:
    """The pace after a write that the API server took."""
    return WritePace(pace.wish, version_of(change), now + READ, now, stood(pace.backoff, now))


def after_failure(pace: WritePace, *, now: float, conflict: bool) -> WritePace:
    """The pace after a write that was not made; a conflict is over as soon as the watch shows the other write."""
    return replace(pace, due=now if conflict else now + RETRY)


def in_place(pace: WritePace, *, now: float) -> WritePace:
    """The pace of a Service that needs no change."""
    return replace(pace, backoff=stood(pace.backoff, now))
