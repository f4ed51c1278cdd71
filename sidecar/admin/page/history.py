"""A short memory of how fast things went: what the charts of a page show.

The law: pure; it holds so many samples and no more, each a row of numbers, whatever happens and however long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

EVERY: Final = 2.0
"""Seconds between two samples."""
KEPT: Final = 151
"""Five minutes of them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    key: str
    name: str
    of: Callable[[Mapping[str, float], Mapping[str, float], float], float]
    """Its value between two readings of the counters, so many seconds apart."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A few lines over the same time and on the same scale."""

    key: str
    title: str
    unit: str
    lines: Sequence[Line]


def rate(key: str, name: str, *counters: str) -> Line:
    """What one or more counters grew by, a second."""

    def grown(before: Mapping[str, float], now: Mapping[str, float], seconds: float) -> float:
        return sum(now[counter] - before[counter] for counter in counters) / seconds

    return Line(key, name, grown)


def level(key: str, name: str, gauge: str) -> Line:
    """What a gauge shows at the end."""
    return Line(key, name, lambda _before, now, _seconds: now[gauge])


def mean(key: str, name: str, total: str, count: str, *, scale: float = 1.0) -> Line:
    """What one total grew by for each by which the count did; 0 where it did not."""

    def share(before: Mapping[str, float], now: Mapping[str, float], _: float) -> float:
        times = now[count] - before[count]
        return scale * (now[total] - before[total]) / times if times else 0.0

    return Line(key, name, share)


@dataclass(slots=True)
class History:
    """Samples of the lines of some charts; `take` is called every EVERY seconds."""

    charts: Sequence[Chart]
    number: int = 0
    """Of the last sample, from 1; counts on when old ones go."""
    _rows: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: tuple[float, Mapping[str, float]] | None = None

    @property
    def lines(self) -> list[Line]:
        """The lines in the order of the numbers of a sample."""
        return [line for chart in self.charts for line in chart.lines]

    def take(self, now: float, counters: Mapping[str, float]) -> None:
        """Make a sample of the counters, read at `now` in seconds of any clock; the first reading only begins."""
        before, self._before = self._before, (now, counters)
        if before is None or now <= before[0]:
            return
        seconds = now - before[0]
        self._rows.append(tuple(_rounded(line.of(before[1], counters, seconds)) for line in self.lines))
        self.number += 1

    def since(self, number: int) -> list[tuple[float, ...]]:
        """The samples after that one, as far as they are kept; all of them for a number that never was."""
        missing = self.number - number
        if not 0 <= missing <= len(self._rows):
            missing = len(self._rows)
        return list(self._rows)[len(self._rows) - missing :]

    def line(self, key: str) -> list[float]:
        """The values of one line, the oldest first."""
        position = [line.key for line in self.lines].index(key)
        return [row[position] for row in self._rows]


def _rounded(number: float) -> float:
    """Three digits behind the point: more of them are noise and octets."""
    return round(number, 3)
