"""Status: what a follower tells about itself, for readiness, metrics and the status page.

The law: written by one follower, read by anyone at any time; plain numbers that cost nothing to keep.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound


class State(Enum):
    """What a follower is doing."""

    SYNCING = "syncing"
    """Reading a list."""
    WATCHING = "watching"
    RETRYING = "retrying"
    """Waiting after a failure; what was known is kept."""


@dataclass(slots=True)
class Status:
    """One follower's state, times and counters."""

    kind: str = ""
    state: State = State.SYNCING
    error: ApiError | None = None
    """Why it is retrying; None as soon as the server answers again."""
    synced: bool = False
    """Whether a whole list was read once; stays true through every outage."""
    doubted: bool = False
    """A list that lost nearly everything waits for a second one to confirm it."""
    objects: int = 0
    contact: float | None = None
    """When the server last said anything, on trio's clock; None before it first did."""
    contact_time: float | None = None
    """The same as seconds since the epoch."""
    synced_time: float | None = None
    """When the last whole list was complete, in seconds since the epoch."""
    lists: int = 0
    """Whole lists read."""
    pages: int = 0
    watches: int = 0
    events: int = 0
    """Additions, updates and deletions that watches showed."""
    bookmarks: int = 0
    unreadable: int = 0
    """Objects seen so far whose fields were not of their kind's types."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by ApiError.cause."""

    @property
    def absent(self) -> bool:
        """Whether the server does not have this kind, or does not let us see it: nothing to wait for."""
        return isinstance(self.error, Forbidden | NotFound)

    def describe(self) -> str:
        """`watching`, or `retrying: 503: ...`."""
        return f"{self.state.value}: {self.error}" if self.error else self.state.value

    def age(self, now: float) -> float | None:
        """Seconds since the server last said anything; `now` is trio's clock."""
        return None if self.contact is None else now - self.contact
