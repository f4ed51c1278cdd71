"""The table at the end, and its rows. Pure.

The law: a row for each figure of a command, the goal beside it; a command that was not measured says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tests.bench.kit import command_rows
from tests.bench.kit.command_rows import Figures, Row
from tests.bench.kit.figures import format_reached
from tests.bench.memory.samples import Sample
from tests.kit.grid import format_grid

RESIDENT: Final = "resident"
CPU: Final = "processor time"
_FIGURES: Final[Figures[Sample]] = MappingProxyType(
    {
        RESIDENT: (lambda one: one.resident, "MB"),
        "proportional": (lambda one: one.proportional, "MB"),
        "unique": (lambda one: one.unique, "MB"),
        CPU: (lambda one: one.cpu, "s"),
    }
)
_HEAD: Final = ("command", "what", "figure", "(min-max)", "unit", "goal", "reached")
_BESIDE: Final = ("beside", "ours / beside")

NOTE: Final = """\
Figures are medians over rounds. Memory is that of the process at rest after its first answer: resident, proportional
(pages that it shares count in part) and unique (its own alone). Processor time: from the start to the first answer.
"""


def make_rows(
    command: str, goals: Mapping[str, float], samples: Sequence[Sample], beside: Sequence[Sample] = ()
) -> list[Row]:
    """The rows of one command."""
    return command_rows.make_rows(command, _FIGURES, samples, beside, goals=goals)


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    more = _BESIDE if any(row.beside for row in rows) else ()
    faults = "".join(f"{row.command}: not measured: {row.fault}\n" for row in rows if row.fault)
    cells = [_cells(row) + (_beside_cells(row) if more else ()) for row in rows]
    return format_grid((*_HEAD, *more), cells, left=(0, 1, 4)) + "\n" + NOTE + faults


def _cells(row: Row) -> tuple[str, ...]:
    figure = row.figure
    return (
        row.command,
        row.what,
        f"{figure.median:.2f}" if figure else "",
        f"({figure.low:.2f}-{figure.high:.2f})" if figure else "",
        row.unit,
        "not measured" if row.fault else (f"<= {row.goal:g}" if row.goal is not None else ""),
        "" if row.reached is None else format_reached(row.reached),
    )


def _beside_cells(row: Row) -> tuple[str, ...]:
    return f"{row.beside.median:.2f}" if row.beside else "", f"{row.ratio:.2f}" if row.ratio is not None else ""
