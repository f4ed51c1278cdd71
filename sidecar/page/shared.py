"""One copy of what changes for all who walk through it at the same time.

The law: pure. A copy lives as long as somebody uses it and is taken over by who comes within a second, so that memory
is bounded by time and not by the number of those who ask.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Rows = TypeVar("Rows")

_FRESH: Final = 1.0
"""Seconds for which a copy is good enough for others."""


class Copy(Generic[Rows]):
    """What was there at some time."""

    __slots__ = ("__weakref__", "rows", "taken")

    def __init__(self, rows: Rows, taken: float) -> None:
        self.rows = rows
        self.taken = taken


class Shared(Generic[Rows]):
    """Makes copies; whoever has one keeps it alive."""

    def __init__(self, make: Callable[[], Rows], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._last: weakref.ref[Copy[Rows]] | None = None

    def take(self) -> Copy[Rows]:
        """A copy that is at most a second old."""
        now = self._clock()
        last = self._last() if self._last else None
        if last is None or now - last.taken > _FRESH:
            last = Copy(self._make(), now)
            self._last = weakref.ref(last)
        return last
