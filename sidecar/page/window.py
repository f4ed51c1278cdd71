"""A window on many rows: those that match a search, sorted, a page of them at a time.

The law: pure; one pass over the rows, in steps that each take less than a millisecond, and no more kept than a page.
Sorting 100,000 names would hold up everything else for 80 ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

Row = TypeVar("Row")

_STEP: Final = 400
"""Rows looked at in one step."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of sorted rows is: behind a key, or before one; with neither, at the start."""

    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Window(Generic[Row]):
    """Some rows by their keys, in order, and how many there are around them."""

    rows: tuple[tuple[str, Row], ...]
    earlier: int
    """Rows that match and come before these."""
    total: int
    """Rows that match."""

    @property
    def later(self) -> int:
        """Rows that match and come after these."""
        return self.total - self.earlier - len(self.rows)


def find_window(
    rows: Iterable[tuple[str, Row]], *, matches: Callable[[str, Row], bool], place: Place, size: int
) -> Generator[None, None, Window[Row]]:
    """The page of rows at a place, out of (key, row) in any order; the keys differ."""
    best: list[tuple[str, Row]] = []
    total = outside = 0
    choose = heapq.nlargest if place.before else heapq.nsmallest
    rest = iter(rows)
    while part := list(islice(rest, _STEP)):
        found = [one for one in part if matches(*one)]
        total += len(found)
        inside = [one for one in found if _is_inside(one[0], place)]
        outside += len(found) - len(inside)
        if len(best) == size:
            edge = best[-1][0]
            inside = [one for one in inside if (one[0] > edge if place.before else one[0] < edge)]
        if inside:
            best = choose(size, [*best, *inside], key=_key)
        yield
    best.sort(key=_key)
    # Towards the start there may be more than the page holds; towards the end that is for Window.later to know.
    earlier = total - outside - len(best) if place.before else outside
    return Window(tuple(best), earlier, total)


def _is_inside(key: str, place: Place) -> bool:
    return key < place.before if place.before else key > place.after


def _key(row: tuple[str, object]) -> str:
    return row[0]
