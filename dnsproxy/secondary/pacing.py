"""When a secondary looks at its primary again (RFC 1035 section 3.3.13, RFC 1996 section 4.3).

The law: pure. A NOTIFY brings a look at once, unless the ones before brought nothing: then they count as a flood, and
the looks that they bring are a second apart. Failures are retried at longer and longer intervals.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.zone.zone_records import REFRESH, RETRY

_TOKENS: Final = 10.0
_FIRST_RETRY: Final = 0.5


class LookPacing:
    """The pacing of one zone; times in seconds."""

    def __init__(self) -> None:
        self._tokens = _TOKENS
        self._filled = 0.0
        self._retry = _FIRST_RETRY
        self.next_look = 0.0
        """When to look without a NOTIFY."""

    def after_success(self, *, now: float, was_new: bool, notified: bool) -> None:
        """The look found an answer."""
        self._retry = _FIRST_RETRY
        self.next_look = now + REFRESH
        if notified and not was_new:
            self._spend(now)

    def after_failure(self, *, now: float, notified: bool = False) -> None:
        """No primary gave an answer."""
        if notified:
            self._spend(now)
        self.next_look = now + self._retry
        self._retry = min(2 * self._retry, RETRY)

    def notified_look(self, *, now: float) -> float:
        """When a NOTIFY that comes now brings a look."""
        self._fill(now)
        return now if self._tokens >= 1 else now + 1 - self._tokens

    def _spend(self, now: float) -> None:
        self._fill(now)
        self._tokens = max(0.0, self._tokens - 1)

    def _fill(self, now: float) -> None:
        self._tokens = min(_TOKENS, self._tokens + max(0.0, now - self._filled))
        self._filled = now
