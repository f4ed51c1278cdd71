"""One index of changing rows, shared by all searches.

The law: pure. The index is made at the first search and dropped a minute after the last one. If the changes are known,
only they are applied. Otherwise the whole index is made again, but not while it is young: a search within 20 ms per
1,000 rows gets the outdated index. So many searches of rows that change all the time spend at most a tenth of the time
on making indexes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from sidecar.admin.page.index import Index

_PATIENCE: Final = 20e-6
"""Seconds for each row: ten times the time to sort it and to make its text."""
_SORTING: Final = 1.0
"""Seconds, while the number of rows is unknown."""
_IDLE: Final = 60.0
"""Seconds without a search."""

Changes = Mapping[str, bool]
"""Keys, and whether they exist now."""


class Shared:
    """Keeps an index; `version` changes with the rows, and `changes` returns the changes since a version.

    None means that the changes are not known.
    """

    def __init__(
        self,
        make: Callable[[], Index],
        *,
        version: Callable[[], int],
        changes: Callable[[int], Changes | None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._version = version
        self._changes = changes
        self._clock = clock
        self._kept: tuple[Index, int, float] | None = None
        self._asked = 0.0

    def take(self) -> Index:
        """The index; it may be outdated, but only while it is young."""
        self._asked = self._clock()
        if self._kept is None or self._is_outdated(*self._kept):
            self._kept = (self._make_anew(), self._version(), self._asked)
        return self._kept[0]

    def tidy(self) -> None:
        """Drop an index that no search will use any more; to be called regularly."""
        if self._kept is None:
            return
        is_lost = self._known_changes() is None and self._is_outdated(*self._kept)
        if is_lost or self._clock() - self._asked > _IDLE:
            self._kept = None

    def _make_anew(self) -> Index:
        changes = self._known_changes()
        return self._make() if self._kept is None or changes is None else self._kept[0].after(changes)

    def _known_changes(self) -> Changes | None:
        """The changes since the kept index was made; None if it is not sorted yet, or the changes are not known."""
        if self._kept is None or self._kept[0].size is None:
            return None
        return self._changes(self._kept[1])

    def _is_outdated(self, index: Index, version: int, made: float) -> bool:
        if version == self._version():
            return False
        patience = _SORTING if index.size is None else index.size * _PATIENCE
        return self._known_changes() is not None or self._clock() - made > patience
