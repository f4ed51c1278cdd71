"""When to write a snapshot: whether it is due, and when to check again.

The law: decisions only. Claims that may be wrong are never written, and writing takes at most 2 % of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class SnapshotPace:
    """How often to write; times in seconds."""

    interval: float = 5.0
    share: float = 0.02
    """At most this share of the time is spent on writing, however large the table is."""
    empty: float = 60.0
    """If all claims are gone, they must stay gone for this long: longer than a list waits for its confirmation."""
    retry: float = 60.0
    """After a failure."""
    refresh: float = 3600.0
    """Unchanged claims are written again after this, so that their age is known to the hour."""


DEFAULT_PACE = SnapshotPace()


class SnapshotSchedule:
    """The last write; times in seconds on any monotonic clock."""

    def __init__(self, pace: SnapshotPace) -> None:
        self._pace = pace
        self._version: object = None
        self._written = -inf
        self._empty_since: float | None = None

    def is_due(self, *, version: object, consistent: bool, empty: bool, now: float) -> bool:
        """Whether to write the current claims.

        `version` differs after every change. `consistent` tells whether the claims match the cluster, and `empty`
        whether there are none: a wrongly empty list must not overwrite the snapshot.
        """
        if not (consistent and empty):
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        if not consistent or (self._empty_since is not None and now - self._empty_since < self._pace.empty):
            return False
        return version != self._version or now - self._written >= self._pace.refresh

    def written(self, *, version: object, now: float) -> None:
        """The claims of this version are in the file."""
        self._version, self._written = version, now

    def pause(self, *, lasted: float, failed: bool) -> float:
        """Seconds to wait after an attempt that took `lasted` seconds."""
        return max(self._pace.interval, lasted / self._pace.share, self._pace.retry if failed else 0)
