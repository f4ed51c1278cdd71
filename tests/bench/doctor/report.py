"""The table at the end, and the same as JSON. Pure.

The law: a row for each figure of a command, the goal beside it; what was not measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from tests.bench.doctor.commands import PEAK, SECONDS
from tests.bench.doctor.samples import Sample
from tests.bench.kit import command_rows
from tests.bench.kit.command_rows import Figures, Row
from tests.bench.kit.figures import format_reached
from tests.kit.grid import format_grid

HEAD: Final = ("command", "way", "what", "figure", "(min-max)", "unit", "goal", "reached")
_BESIDE: Final = ("beside", "ours / beside")
_WORDS: Final = (0, 1, 2, 5)

TIME: Final = "time"
RESIDENT: Final = "peak resident"
_REQUESTS: Final = "requests"
_SERVED: Final = "the API server's processor time"
_OF_THE_API_SERVER: Final = (_REQUESTS, _SERVED)
_FIGURES: Final[Figures[Sample]] = MappingProxyType(
    {
        TIME: (lambda one: one.seconds, "s"),
        "processor time": (lambda one: one.cpu, "s"),
        RESIDENT: (lambda one: one.peak, "MiB"),
        _REQUESTS: (lambda one: float(one.requests), ""),
        _SERVED: (lambda one: one.served, "s"),
    }
)

NOTE: Final = """\
Figures are medians over rounds, from the start of a process to its end. way: by a kubeconfig as on a laptop, or with
the token of a ServiceAccount as in a pod; empty: it asks no API server. requests: to the API server, by its audit log.
"""


def make_rows(
    command: str, way: str, samples: Sequence[Sample], beside: Sequence[Sample] = (), *, has_goals: bool = True
) -> list[Row]:
    """The rows of one command; `has_goals`: whether the cluster has the size that there are goals for."""
    bounds = {TIME: SECONDS.get(command), RESIDENT: PEAK} if has_goals else {}
    goals = {what: bound for what, bound in bounds.items() if bound is not None}
    figures = {what: one for what, one in _FIGURES.items() if way or what not in _OF_THE_API_SERVER}
    return command_rows.make_rows(command, figures, samples, beside, goals=goals, way=way)


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
