"""The table at the end, and the same as JSON. Pure.

The law: a row for each figure of a command, the goal beside it; what was not measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tests.bench.doctor.commands import PEAK, SECONDS
from tests.bench.doctor.samples import Sample
from tests.bench.kit.figures import Spread, format_reached, ratio, spread_over
from tests.kit.grid import format_grid

HEAD: Final = ("command", "way", "what", "figure", "(min-max)", "unit", "goal", "reached")
_BESIDE: Final = ("beside", "ours / beside")
_WORDS: Final = (0, 1, 2, 5)

TIME: Final = "time"
RESIDENT: Final = "peak resident"
_FIGURES: Final[Mapping[str, tuple[Callable[[Sample], float], str]]] = MappingProxyType(
    {
        TIME: (lambda one: one.seconds, "s"),
        "processor time": (lambda one: one.cpu, "s"),
        RESIDENT: (lambda one: one.peak, "MiB"),
        "requests": (lambda one: float(one.requests), ""),
        "the API server's processor time": (lambda one: one.served, "s"),
    }
)

NOTE: Final = """\
Figures are medians over rounds, from the start of a process to its end. way: by a kubeconfig as on a laptop, or with
the token of a ServiceAccount as in a pod; empty: it asks no API server. requests: to the API server, by its audit log.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    command: str
    way: str
    what: str
    figure: Spread | None
    unit: str
    goal: float | None = None
    reached: bool | None = None
    beside: Spread | None = None
    """The figure of the other checkout."""
    ratio: float | None = None
    fault: str = ""


def make_rows(
    command: str, way: str, samples: Sequence[Sample], beside: Sequence[Sample] = (), *, has_goals: bool = True
) -> list[Row]:
    """The rows of one command; `has_goals`: whether the cluster has the size that there are goals for."""
    goals = {TIME: SECONDS.get(command), RESIDENT: PEAK} if has_goals else {}
    return [
        _make_row(command, way, what, spread_over(samples, read), spread_over(beside, read), unit, goals.get(what))
        for what, (read, unit) in _FIGURES.items()
        if way or what in (TIME, "processor time", RESIDENT)
    ]


def _make_row(
    command: str,
    way: str,
    what: str,
    figure: Spread | None,
    beside: Spread | None,
    unit: str,
    goal: float | None,
) -> Row:
    reached = None if goal is None or figure is None else figure.median <= goal
    return Row(command, way, what, figure, unit, goal, reached, beside, ratio(figure, beside))


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    more = _BESIDE if any(row.beside for row in rows) else ()
    faults = "".join(f"{row.command} {row.way}: not measured: {row.fault}\n" for row in rows if row.fault)
    cells = [_cells(row) + (_beside_cells(row) if more else ()) for row in rows]
    return format_grid((*HEAD, *more), cells, left=_WORDS) + "\n" + NOTE + faults


def _cells(row: Row) -> tuple[str, ...]:
    figure = row.figure
    return (
        row.command,
        row.way,
        row.what,
        _number(figure.median) if figure else "",
        f"({_number(figure.low)}-{_number(figure.high)})" if figure and figure.low != figure.high else "",
        row.unit,
        "not measured" if row.fault else (f"<= {row.goal:g}" if row.goal is not None else ""),
        "" if row.reached is None else format_reached(row.reached),
    )


def _beside_cells(row: Row) -> tuple[str, ...]:
    return _number(row.beside.median) if row.beside else "", f"{row.ratio:.2f}" if row.ratio is not None else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"
