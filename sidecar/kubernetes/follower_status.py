"""The status of a follower, for readiness, metrics and the status page.

The law: one follower writes it, any code reads it at any time; the fields are plain numbers that cost nothing to keep.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound

RESTORED: Final = "restored"
"""The cluster's state went back to an earlier version."""


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
