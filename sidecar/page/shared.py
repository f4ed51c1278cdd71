"""One index of what changes for all who search it.

The law: pure. Nothing is made before somebody asks. What the changes have left behind is given to who comes within a
time that grows with the work of making it anew, a fiftieth of a second for 1,000 rows: many who search a table that
changes all the time have it made again and again, in a tenth of the time at most. It is let go of when it is outdated,
or when nobody has asked for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from sidecar.page.window import Index

_PATIENCE: Final = 20e-6
"""Seconds for each row: ten times what it takes to sort it and to make its text."""
_SORTING: Final = 1.0
"""Seconds, until the number of rows is known."""
_IDLE: Final = 60.0
"""Seconds without a search."""


class Shared:
    """Keeps an index; `version` says whether what it is made of has changed."""

    def __init__(
        self, make: Callable[[], Index], *, version: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._version = version
        self._clock = clock
        self._kept: tuple[Index, int, float] | None = None
        self._asked = 0.0

    def take(self) -> Index:
        """The index; one that is outdated only where it is young."""
        self._asked = now = self._clock()
        if self._kept is None or self._is_outdated(*self._kept):
            self._kept = (self._make(), self._version(), now)
        return self._kept[0]

    def tidy(self) -> None:
        """Let go of what is not to be given to anybody any more; to be called now and then."""
        if self._kept and (self._is_outdated(*self._kept) or self._clock() - self._asked > _IDLE):
            self._kept = None

    def _is_outdated(self, index: Index, version: int, made: float) -> bool:
        patience = _SORTING if index.size is None else index.size * _PATIENCE
        return version != self._version() and self._clock() - made > patience
