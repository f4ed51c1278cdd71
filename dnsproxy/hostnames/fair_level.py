"""The fair level: how much each party may have of something that does not suffice for all.

The law: pure; the level depends only on what the parties demand, never on the order of their changes. It is the
ceiling, halved until all demands, each cut to the level, fit the capacity. So a party that demands less than the level
loses nothing, whatever the others demand. A change costs the same for any number of parties.
"""

from __future__ import annotations

from itertools import takewhile


class FairLevel:
    """The level of one resource; `ceiling`: the most for one party, `capacity`: for all together."""

    def __init__(self, *, ceiling: int, capacity: int) -> None:
        self._capacity = capacity
        halves = (min(ceiling, capacity) >> shift for shift in range(64))
        self._levels = tuple(takewhile(bool, halves))
        # The sum of all demands, each cut to the level: as many sums as levels, some twenty.
        self._sums = [0] * len(self._levels)

    @property
    def level(self) -> int:
        """The most for one party at present; zero if not even one for each party fits."""
        fitting = (level for level, total in zip(self._levels, self._sums, strict=True) if total <= self._capacity)
        return next(fitting, 0)

    def change(self, before: int, after: int) -> None:
        """Note that one party demands `after` and not `before` any more."""
        least = min(before, after)
        for number, level in enumerate(self._levels):
            if level <= least:
                break
            self._sums[number] += min(after, level) - min(before, level)
