"""The recent samples of rates and gauges that the charts of a page show.

The law: pure; it holds at most KEPT samples, each a row of numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

EVERY: Final = 2.0
"""Seconds between two samples."""
KEPT: Final = 151
"""Samples: five minutes."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    key: str
    name: str
    of: Callable[[Mapping[str, float], Mapping[str, float], float], float]
    """Its value from two readings of the counters and the seconds between them."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A few lines with the same time axis and scale."""

    key: str
    title: str
    unit: str
    lines: Sequence[Line]


def rate(key: str, name: str, *counters: str) -> Line:
    """The increase of one or more counters per second."""

    def grown(before: Mapping[str, float], now: Mapping[str, float], seconds: float) -> float:
        return sum(now[counter] - before[counter] for counter in counters) / seconds

    return Line(key, name, grown)


def level(key: str, name: str, gauge: str) -> Line:
    """The value of a gauge at the second reading."""
    return Line(key, name, lambda _before, now, _seconds: now[gauge])


def mean(key: str, name: str, total: str, count: str, *, scale: float = 1.0) -> Line:
    """The increase of a total divided by the increase of a count; 0 if the count did not increase."""

    def share(before: Mapping[str, float], now: Mapping[str, float], _: float) -> float:
        times = now[count] - before[count]
        return scale * (now[total] - before[total]) / times if times else 0.0

    return Line(key, name, share)


@dataclass(slots=True)
class History:
    """Samples of the lines of some charts; `take` is called every EVERY seconds."""

    charts: Sequence[Chart]
    number: int = 0
    """The number of the last sample, from 1; removed samples stay counted."""
    _rows: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: tuple[float, Mapping[str, float]] | None = None

    @property
    def lines(self) -> list[Line]:
        """The lines in the order of the numbers of a sample."""
        return [line for chart in self.charts for line in chart.lines]

    def take(self, now: float, counters: Mapping[str, float]) -> None:
        """Add a sample of the counters, read at `now` in seconds of any clock; the first call only stores them."""
        before, self._before = self._before, (now, counters)
        if before is None or now <= before[0]:
            return
        seconds = now - before[0]
        self._rows.append(tuple(_rounded(line.of(before[1], counters, seconds)) for line in self.lines))
        self.number += 1

    def since(self, number: int) -> list[tuple[float, ...]]:
        """The samples after that number, as far as they are kept; all samples for an unknown number."""
        missing = self.number - number
        if not 0 <= missing <= len(self._rows):
            missing = len(self._rows)
        return list(self._rows)[len(self._rows) - missing :]

    def line(self, key: str) -> list[float]:
        """The values of one line, the oldest first."""
        position = [line.key for line in self.lines].index(key)
        return [row[position] for row in self._rows]


def _rounded(number: float) -> float:
    """Three decimal places: more would be noise, and would make answers longer."""
    return round(number, 3)
