"""The order of age: the objects of one namespace that claim names, and up to which of them they are admitted.

The law: pure; the admitted ones are always the oldest. A change moves one object; step() moves the boundary by one.
Tested in test_name_shares.py.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec


class Entry(msgspec.Struct, frozen=True, order=True, gc=False):
    """An object that claims names; the oldest sorts first."""

    created: str
    source: str
    key: str
    size: int
    """In names."""


class AgeOrder:
    """The objects of one namespace, by age: first those that are admitted."""

    __slots__ = ("admitted", "entries", "size", "taken")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.admitted = 0
        """The number of admitted entries."""
        self.taken = 0
        """The size of those."""
        self.size = 0
        """The size of all."""

    @property
    def left_out(self) -> int:
        """The number of entries that are not admitted."""
        return len(self.entries) - self.admitted

    def put(self, entry: Entry, level: int) -> bool:
        """Add an entry; returns whether it is admitted. What it takes from younger ones is left to step()."""
        number = bisect_left(self.entries, entry)
        self.entries.insert(number, entry)
        self.size += entry.size
        admitted = number < self.admitted or (number == self.admitted and self.taken + entry.size <= level)
        if admitted:
            self.admitted += 1
            self.taken += entry.size
        return admitted

    def remove(self, entry: Entry) -> None:
        """Remove an entry; who gets its place is left to step()."""
        number = bisect_left(self.entries, entry)
        del self.entries[number]
        self.size -= entry.size
        if number < self.admitted:
            self.admitted -= 1
            self.taken -= entry.size

    def is_settled(self, level: int) -> bool:
        """Whether nothing is left to step()."""
        others = self.entries[self.admitted : self.admitted + 1]
        return self.taken <= level and not any(self.taken + one.size <= level for one in others)

    def admits(self, entry: Entry) -> bool:
        """Whether one of the entries is admitted."""
        return bisect_left(self.entries, entry) < self.admitted

    def step(self, level: int) -> tuple[Entry, bool] | None:
        """Leave out the youngest admitted entry, or admit the oldest other one (True); None if nothing is to do."""
        if self.taken > level:
            self.admitted -= 1
            entry = self.entries[self.admitted]
            self.taken -= entry.size
            return entry, False
        if self.admitted < len(self.entries) and self.taken + self.entries[self.admitted].size <= level:
            entry = self.entries[self.admitted]
            self.admitted += 1
            self.taken += entry.size
            return entry, True
        return None
