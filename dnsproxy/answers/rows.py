"""Rows: a dict that is handed out again and again, and goes on changing in between.

The law: what was handed out never changes while anybody has it. There are two dicts: one is out while the other
changes, and once that one is out, the first takes over what it has missed. Where somebody still has it, a copy takes
its place, which for 100,000 rows holds up everything else for some milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

V = TypeVar("V")

_SHARE: Final = 8
"""Where more than one row in so many has changed, a copy takes less time."""


class Rows(Generic[V]):
    """Values by key; None is no value."""

    __slots__ = ("_changed", "_last", "_rows")

    def __init__(self) -> None:
        self._rows: dict[bytes, V] = {}
        self._last: dict[bytes, V] = {}
        """What was handed out before."""
        self._changed: dict[bytes, None] = {}
        """The keys in which the two differ."""

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: bytes) -> V | None:
        """The value of a key."""
        return self._rows.get(key)

    def put(self, key: bytes, value: V | None) -> None:
        """Set the value of a key; go_on() must have been called since the last hand_out()."""
        self._changed[key] = None
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value

    def hand_out(self) -> Mapping[bytes, V]:
        """All rows."""
        return self._rows

    def go_on(self, *, free: bool) -> None:
        """What was handed out stays as it is from now on. `free`: nobody has what was handed out before it."""
        rows = self._last
        if free and len(self._changed) * _SHARE <= len(self._rows):
            for key in self._changed:
                value = self._rows.get(key)
                if value is None:
                    rows.pop(key, None)
                else:
                    rows[key] = value
        else:
            rows = self._rows.copy()
        self._rows, self._last, self._changed = rows, self._rows, {}
