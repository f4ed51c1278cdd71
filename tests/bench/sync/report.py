"""The table at the end, and the same as JSON. Pure.

The law: a row a figure, the goal beside it; what was not measured says why in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.figures import Spread
from tests.bench.grid import format_grid

HEAD: Final = ("Ingresses", "what", "figure", "(min-max)", "unit", "goal", "reached")
_WORDS: Final = (1, 4)

READY: Final = "start to ready"
RESIDENT: Final = "resident once ready"
PEAK: Final = "peak resident"
SYNC_P99: Final = "answers while it syncs, p99"
ANSWERED_P50: Final = "created to answered, 10/s, p50"
ANSWERED_P99: Final = "created to answered, 10/s, p99"
CHANGES_P99: Final = "answers during 1,000 changes/s, p99"

GOALS: Final[Mapping[tuple[int, str], float]] = {
    (10_000, READY): 1.0,
    (100_000, READY): 8.0,
    (10_000, RESIDENT): 100,
    (100_000, RESIDENT): 300,
    **{(size, SYNC_P99): 5.0 for size in (10_000, 100_000)},
    **{(size, ANSWERED_P50): 20.0 for size in (10_000, 100_000)},
    **{(size, ANSWERED_P99): 100.0 for size in (10_000, 100_000)},
    **{(size, CHANGES_P99): 5.0 for size in (10_000, 100_000)},
}
"""What a figure is to stay under, in its unit."""

NOTE: Final = """\
Figures are medians over rounds. start to ready: from the start of the process to the table with all names in it, in a
pod (a ServiceAccount's token) unless it says otherwise; in the queue, it was ready to run while others ran. answers:
of names that are in the table all the time, at 1,000 queries a second; a lost one counts as a second. created to
answered: from the API server's yes to the first answer.
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


def make_row(size: int, what: str, figure: Spread | None, unit: str) -> Row:
    """With the goal, if there is one."""
    goal = GOALS.get((size, what))
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
