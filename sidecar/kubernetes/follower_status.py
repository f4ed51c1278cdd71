"""The status of a follower, for readiness, metrics and the status page.

The law: one follower writes it, any code reads it at any time; the fields are plain numbers that cost nothing to keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound

RESTORED: Final = "restored"
"""The cluster's state went back to an earlier version."""

_NAMED: Final = 3
"""Namespaces in a message; the first is the one whose error it has."""


class FollowerState(Enum):
    """What a follower is doing."""

    SYNCING = "syncing"
    """Reading a list."""
    WATCHING = "watching"
    RETRYING = "retrying"
    """Waiting after a failure; known objects are kept."""


@dataclass(slots=True)
class FollowerStatus:
    """One follower's state, times and counters."""

    kind: str = ""
    state: FollowerState = FollowerState.SYNCING
    error: ApiError | None = None
    """Why it is retrying; None as soon as the server answers again."""
    synced: bool = False
    """Whether a whole list was read once; stays true through every outage."""
    doubted: bool = False
    """Whether a list that lost nearly all objects waits for a second list to confirm it."""
    objects: int = 0
    contact: float | None = None
    """When the server last sent anything, on trio's clock; None before the first time."""
    contact_time: float | None = None
    """The same as seconds since the epoch."""
    synced_time: float | None = None
    """When the last whole list was complete, in seconds since the epoch."""
    lists: int = 0
    """Whole lists read."""
    pages: int = 0
    watches: int = 0
    events: int = 0
    """Additions, updates and deletions from watches."""
    bookmarks: int = 0
    unreadable: int = 0
    """Objects so far with fields of a wrong type."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by ApiError.cause, or RESTORED."""

    @property
    def absent(self) -> bool:
        """Whether the server does not have this kind, or RBAC hides it: there is nothing to wait for."""
        return isinstance(self.error, Forbidden | NotFound)

    def describe(self) -> str:
        """`watching`, or `retrying: 503: ...`."""
        return f"{self.state.value}: {self.error}" if self.error else self.state.value

    def age(self, now: float) -> float | None:
        """Seconds since the server last sent anything; `now` is trio's clock."""
        return None if self.contact is None else now - self.contact


def join_statuses(joined: FollowerStatus, parts: Mapping[str, FollowerStatus]) -> None:
    """Set the status of a kind from those of its namespaces, at least one; `parts` by namespace.

    It is synced if all are, and its last contact is the earliest of theirs: a namespace that fails is never hidden by
    those that work.
    """
    every = tuple(parts.values())
    joined.error = _joined_error(parts)
    joined.state = _joined_state(every)
    joined.synced = all(one.synced for one in every)
    joined.doubted = any(one.doubted for one in every)
    joined.contact = min((one.contact for one in every if one.contact is not None), default=None)
    joined.contact_time = min((one.contact_time for one in every if one.contact_time is not None), default=None)
    if joined.synced:
        joined.synced_time = min((one.synced_time for one in every if one.synced_time is not None), default=None)
    joined.objects = sum(one.objects for one in every)
    joined.lists = sum(one.lists for one in every)
    joined.pages = sum(one.pages for one in every)
    joined.watches = sum(one.watches for one in every)
    joined.events = sum(one.events for one in every)
    joined.bookmarks = sum(one.bookmarks for one in every)
    joined.unreadable = sum(one.unreadable for one in every)
    joined.errors = sum((one.errors for one in every), Counter[str]())


def _joined_state(parts: Sequence[FollowerStatus]) -> FollowerState:
    states = {one.state for one in parts}
    for state in (FollowerState.RETRYING, FollowerState.SYNCING):
        if state in states:
            return state
    return FollowerState.WATCHING


def _joined_error(parts: Mapping[str, FollowerStatus]) -> ApiError | None:
    """The worst error, with the namespaces that have one of its kind: a first sync that waits for it goes before."""
    failing = [(one.synced, one.absent, name, one.error) for name, one in parts.items() if one.error is not None]
    if not failing:
        return None
    _, _, _, worst = min(failing, key=lambda one: one[:2])
    names = [name for _, _, name, error in failing if type(error) is type(worst)]
    more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
    where = f"namespace{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"
    return type(worst)(f"{where}: {worst}", retry_after=worst.retry_after)
