"""One index of what changes for all who search it.

The law: pure. Nothing is made before somebody asks, and nothing is kept longer than a minute after the last one. What
is known to have changed is made anew; where that is not known, all is, and then who comes within a time that grows with
that work, a fiftieth of a second for 1,000 rows, is given what is outdated: many who search what changes all the time
have it made again in a tenth of the time at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from sidecar.admin.page.index import Index

_PATIENCE: Final = 20e-6
"""Seconds for each row: ten times what it takes to sort it and to make its text."""
_SORTING: Final = 1.0
"""Seconds, until the number of rows is known."""
_IDLE: Final = 60.0
"""Seconds without a search."""

Changes = Mapping[str, bool]
"""Keys, and whether they are there now."""


class Shared:
    """Keeps an index; `version` says whether what it is made of has changed, `changes` what, since a version.

    None is for what is not known.
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
        """The index; one that is outdated only where it is young."""
        self._asked = self._clock()
        if self._kept is None or self._is_outdated(*self._kept):
            self._kept = (self._make_anew(), self._version(), self._asked)
        return self._kept[0]

    def tidy(self) -> None:
        """Let go of what nobody will be given any more; to be called now and then."""
        if self._kept is None:
            return
        is_lost = self._known_changes() is None and self._is_outdated(*self._kept)
        if is_lost or self._clock() - self._asked > _IDLE:
            self._kept = None

    def _make_anew(self) -> Index:
        changes = self._known_changes()
        return self._make() if self._kept is None or changes is None else self._kept[0].after(changes)

    def _known_changes(self) -> Changes | None:
        """What has changed about the index that is kept, if that is ready and all of it is known."""
        if self._kept is None or self._kept[0].size is None:
            return None
        return self._changes(self._kept[1])

    def _is_outdated(self, index: Index, version: int, made: float) -> bool:
        if version == self._version():
            return False
        patience = _SORTING if index.size is None else index.size * _PATIENCE
        return self._known_changes() is not None or self._clock() - made > patience
