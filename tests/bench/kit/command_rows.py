"""The figures of a command as rows: a goal and another checkout beside each. Pure.

The law: a row for each figure; a command that was not measured has one row with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.bench.kit.figures import Spread, ratio, spread_over

Sample = TypeVar("Sample")
Figures = Mapping[str, tuple[Callable[[Sample], float], str]]
"""By name: how a figure is read from a sample, and its unit."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    command: str
    what: str
    figure: Spread | None
    unit: str
    goal: float | None = None
    """At most this, in the unit."""
    reached: bool | None = None
    beside: Spread | None = None
    """The figure of the other checkout."""
    ratio: float | None = None
    fault: str = ""
    way: str = ""
    """How the command reaches the API server; empty if it has one way or asks none."""


def make_rows(
    command: str,
    figures: Figures[Sample],
    samples: Sequence[Sample],
    beside: Sequence[Sample] = (),
    *,
    goals: Mapping[str, float],
    way: str = "",
) -> list[Row]:
    """The rows of one command."""
    return [
        _make_row(command, what, unit, goals.get(what), spread_over(samples, read), spread_over(beside, read), way)
        for what, (read, unit) in figures.items()
    ]


def _make_row(
    command: str, what: str, unit: str, goal: float | None, figure: Spread | None, beside: Spread | None, way: str
) -> Row:
    reached = None if goal is None or figure is None else figure.median <= goal
    return Row(command, what, figure, unit, goal, reached, beside, ratio(figure, beside), way=way)
