"""The table at the end, and the same as JSON. Pure.

The law: a row a figure, the goal beside it; what was not measured says why in its place.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.kit.figures import Spread
from tests.kit.grid import format_grid

HEAD: Final = ("objects", "what", "figure", "(min-max)", "unit", "goal", "reached")
_WORDS: Final = (1, 4)

READY: Final = "start to ready"
RESIDENT: Final = "resident once ready"
PROPORTIONAL: Final = "resident once ready, shared pages in part"
PEAK: Final = "peak resident"
SYNC_P99: Final = "answers while it syncs, p99"
ANSWERED_P50: Final = "created to answered, 10/s, p50"
ANSWERED_P99: Final = "created to answered, 10/s, p99"
CHANGES_P99: Final = "answers during 1,000 changes/s, p99"
GROWTH: Final = "memory gained by 1,000 changes/s"
MIXED: Final = "mixed kinds"
"""The beginning of a row about objects of several kinds instead of Ingresses."""

SIZES: Final = (10_000, 100_000)
"""Those that there are goals for."""

GOALS: Final[Mapping[tuple[int, str], float]] = {
    **dict(zip(itertools.product(SIZES, [READY]), (1.0, 8.0), strict=True)),
    **dict(zip(itertools.product(SIZES, [RESIDENT]), (100.0, 300.0), strict=True)),
    **dict.fromkeys(itertools.product(SIZES, [SYNC_P99, CHANGES_P99]), 5.0),
    **dict.fromkeys(itertools.product(SIZES, [ANSWERED_P50]), 20.0),
    **dict.fromkeys(itertools.product(SIZES, [ANSWERED_P99]), 100.0),
    (100_000, f"{MIXED}, {READY}"): 10.0,
    (100_000, f"{MIXED}, {RESIDENT}"): 350.0,
    (100_000, f"{MIXED}, {ANSWERED_P99}"): 100.0,
}
"""What a figure is to stay under, in its unit."""

NOTE: Final = """\
Figures are medians over rounds. start to ready: from the start of the process to the table with all names in it, in a
pod (a ServiceAccount's token) unless it says otherwise. in the queue: it was ready to run while others ran, which is
noise; a round that has much of it is taken again. answers: of names that are in the table all the time, at 1,000
queries a second; a lost one counts as a second. created to answered: from the API server's yes to the first answer.
memory gained: from the second quarter of the time to the last. mixed kinds: behind an etcd before 3.4.31 or 3.5.13 the
API server lists them from etcd and not from its cache, which takes it five times as long.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    size: int
    what: str
    figure: Spread | None
    unit: str
    goal: float | None = None
    reached: bool | None = None
    fault: str = ""


def make_row(size: int, what: str, figure: Spread | None, unit: str, *, goal: float | None = None) -> Row:
    """With the goal of GOALS, where none is given."""
    goal = GOALS.get((size, what)) if goal is None else goal
    reached = None if goal is None or figure is None else figure.median < goal
    return Row(size, what, figure, unit, goal, reached)


def format_table(rows: Sequence[Row]) -> str:
    """Lines of text."""
    faults = "".join(f"{row.size:,}, {row.what}: not measured: {row.fault}\n" for row in rows if row.fault)
    return format_grid(HEAD, [_cells(row) for row in rows], left=_WORDS) + "\n" + NOTE + faults


def _cells(row: Row) -> tuple[str, ...]:
    figure = row.figure
    return (
        f"{row.size:,}",
        row.what,
        _number(figure.median) if figure else "",
        f"({_number(figure.low)}-{_number(figure.high)})" if figure and figure.low != figure.high else "",
        row.unit,
        "not measured" if row.fault else (f"< {row.goal:g}" if row.goal is not None else ""),
        {None: "", True: "yes", False: "NO"}[row.reached],
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def to_json(rows: Sequence[Row], **head: Any) -> dict[str, Any]:
    """What is written to a file: how it was measured, and every figure."""
    return {**head, "rows": [asdict(row) for row in rows]}
