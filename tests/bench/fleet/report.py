"""The table at the end, and the same as JSON. Pure.

The law: a row a figure, a column a server; a goal is on our figure, or on its ratio to NSD's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.kit.figures import Spread, format_reached, spread
from tests.kit.grid import format_grid

ROLLOUT: Final = "rollout"
ONE: Final = "one"
CHANGE: Final = "change"
CHANGES: Final = "changes"
REPLICAS: Final = "replicas"

ALL_HAVE: Final = "all have the zone"
HALF_HAVE: Final = "half of them have it"
CPU: Final = "processor time per transfer"
REFUSED: Final = "connections refused or cut"
BEFORE: Final = "memory (PSS) before"
AFTER: Final = "memory (PSS) when all have it"
AXFR: Final = "AXFR, p50"
AXFR_WORST: Final = "AXFR, slowest"
AXFR_SIZE: Final = "octets of an AXFR"
IXFR: Final = "IXFR of one change, p50"
IXFR_WORST: Final = "IXFR of one change, slowest"
IXFR_SIZE: Final = "octets of an IXFR"
HAS_P50: Final = "change to a secondary, p50"
HAS_P99: Final = "change to a secondary, p99"
CHANGES_DONE: Final = "changes made"
VERSIONS: Final = "versions published"
FETCHED: Final = "transfers, all secondaries"
SETTLED: Final = "last change to the last secondary"
BUSY: Final = "on the processor"
ANSWERS_P99: Final = "answers meanwhile, p99"
ANSWERS_WORST: Final = "answers meanwhile, slowest"
ANSWERS_LOST: Final = "answers meanwhile, lost"
QUEUED: Final = "in the queue"
LOAD: Final = "secondaries, on the processor"
READY: Final = "start to all names"
START_CPU: Final = "processor time of a start"
REPLICA_RSS: Final = "resident"
REPLICA_PSS: Final = "memory (PSS)"
CHANGE_CPU: Final = "processor time per change"
ANSWERED_P50: Final = "change to its answer, p50"
ANSWERED_MAX: Final = "change to its answer, slowest"

UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys((ALL_HAVE, HALF_HAVE, READY, START_CPU), "s"),
    **dict.fromkeys((CPU, AXFR, AXFR_WORST, IXFR, IXFR_WORST, HAS_P50, HAS_P99, SETTLED), "ms"),
    **dict.fromkeys((ANSWERS_P99, ANSWERS_WORST, CHANGE_CPU, ANSWERED_P50, ANSWERED_MAX), "ms"),
    **dict.fromkeys((CHANGES_DONE, VERSIONS, FETCHED), "1/s"),
    **dict.fromkeys((BEFORE, AFTER, REPLICA_RSS, REPLICA_PSS), "MiB"),
    **dict.fromkeys((BUSY, QUEUED, LOAD), "%"),
    AXFR_SIZE: "MB",
    IXFR_SIZE: "octets",
}


@dataclass(frozen=True, slots=True)
class Goal:
    """Ours is to stay under this; with `of`, the ratio to that server's."""

    bound: float
    of: str = ""

    def __str__(self) -> str:
        return f"<= {self.bound:g} x {self.of}" if self.of else f"< {self.bound:g}"


OURS: Final = "ours"
NSD: Final = "nsd"
GOALS: Final[Mapping[tuple[str, str], Goal]] = {
    (ROLLOUT, ALL_HAVE): Goal(60),
    (ROLLOUT, CPU): Goal(2, of=NSD),
    (ONE, AXFR): Goal(3000),
    (ONE, IXFR): Goal(20),
    (ONE, ANSWERS_WORST): Goal(5),
    (CHANGE, HAS_P99): Goal(1000),
    (CHANGE, ANSWERS_P99): Goal(5),
    (CHANGES, ANSWERS_P99): Goal(5),
}

NOTE: Final = """\
Figures are medians over rounds. A change of ours is an Ingress that is written into etcd beneath a real API server; of
bind a dynamic update; of nsd another file and SIGHUP. changes: from the first sight of a version at the primary
(a look each 10 ms) to each secondary that has it or a newer one. answers: at 500 queries a second; a lost one counts as
a second. in the queue: it was ready to run while others ran, which is noise. secondaries, on the processor: one process
is all of them; near 100 % it is the limit, and not the primary.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of all servers."""

    workload: str
    what: str
    unit: str
    figures: dict[str, Spread]
    """By server."""
    goal: Goal | None = None
    reached: bool | None = None


def make_rows(rounds: Mapping[str, Sequence[Mapping[tuple[str, str], float]]]) -> list[Row]:
    """Rows of the figures that each server had in its rounds, in the order in which they came."""
    keys = dict.fromkeys(key for samples in rounds.values() for sample in samples for key in sample)
    order = {name: number for number, name in enumerate((ROLLOUT, ONE, CHANGE, CHANGES, REPLICAS))}
    return [_make_row(key, rounds) for key in sorted(keys, key=lambda key: order[key[0]])]


def _make_row(key: tuple[str, str], rounds: Mapping[str, Sequence[Mapping[tuple[str, str], float]]]) -> Row:
    found = {server: spread([sample[key] for sample in samples if key in sample]) for server, samples in rounds.items()}
    figures = {server: value for server, value in found.items() if value is not None}
    goal = GOALS.get(key)
    return Row(*key, UNITS.get(key[1], ""), figures, goal, None if goal is None else _is_reached(goal, figures))


def _is_reached(goal: Goal, figures: Mapping[str, Spread]) -> bool | None:
    ours = figures.get(OURS)
    if ours is None:
        return None
    if not goal.of:
        return ours.median < goal.bound
    theirs = figures.get(goal.of)
    return None if theirs is None else ours.median <= goal.bound * theirs.median


def format_table(rows: Sequence[Row], servers: Sequence[str], faults: Sequence[str]) -> str:
    """Lines of text."""
    head = ("workload", "what", "unit", *servers, "goal", "reached")
    cells = [
        (
            row.workload,
            row.what,
            row.unit,
            *(_number(row.figures[server].median) if server in row.figures else "" for server in servers),
            "" if row.goal is None else str(row.goal),
            "" if row.goal is None else format_reached(row.reached),
        )
        for row in rows
    ]
    return format_grid(head, cells, left=(0, 1, 2)) + "\n" + NOTE + "".join(f"{fault}\n" for fault in faults)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def to_json(rows: Sequence[Row], **head: Any) -> dict[str, Any]:
    """What is written to a file: how it was measured, and every figure."""
    return {
        **head,
        "rows": [
            {
                "workload": row.workload,
                "what": row.what,
                "unit": row.unit,
                "goal": None if row.goal is None else str(row.goal),
                "reached": row.reached,
                "figures": {
                    server: {"median": one.median, "low": one.low, "high": one.high}
                    for server, one in row.figures.items()
                },
            }
            for row in rows
        ],
    }
