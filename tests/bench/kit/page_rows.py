"""The rows of the page, made from the JSON of a benchmark. Pure.

The law: a benchmark knows nothing of charts; the page_rows.py beside it says which of its figures are shown, and how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from docs.speed.chart import make_identifier
from docs.speed.run import Better, Figure, Row
from tests.bench.kit.figures import percentile, spread

OURS: Final = "Switchback"
NAMES: Final[Mapping[str, str]] = {
    "ours": OURS,
    "nsd": "NSD",
    "unbound": "Unbound",
    "bind": "BIND",
    "coredns hosts": "CoreDNS hosts",
    "coredns file": "CoreDNS file",
    "coredns rewrite": "CoreDNS rewrite",
    "coredns forward": "CoreDNS forward",
    "go io.Copy": "Go io.Copy",
    "the same, 1 MB pipes": "haproxy, 1 MB pipes",
}
"""Programs as people write them; a name that is absent stays as it is."""

Found = Iterable[tuple[str, Mapping[str, float] | None]]
"""Programs, by the benchmark's names, and the medians with their spread; None: it was not measured."""


def name_of(program: str) -> str:
    """A program as people write it; those of ours begin with the same word."""
    if program.startswith("ours") and program not in NAMES:
        # Which Python of which folder is this machine's affair.
        return OURS + re.sub(r", \S*/\S+ \((.+)\)", r", optimised Python \1", program.removeprefix("ours"))
    return NAMES.get(program, program)


def make_row(
    bench: str,
    *names: str,
    title: str,
    unit: str,
    better: Better,
    found: Found,
    rounds: int,
    factor: float = 1.0,
    faults: Mapping[str, str] | None = None,
    **more: Any,
) -> Iterator[Row]:
    """A row, if any figure was measured or has a reason; `factor` makes the benchmark's unit that of the row."""
    figures = {name_of(program): _figure(spread, factor, rounds) for program, spread in found if spread is not None}
    missing = {
        name_of(program): _first(why) for program, why in (faults or {}).items() if name_of(program) not in figures
    }
    if not figures and not missing:
        return
    ours = [name for name in figures if name.startswith(OURS)] or [OURS]
    identifier = make_identifier(bench, *names)
    yield Row(bench, identifier, title, unit, better, figures, faults=missing, **{"ours": ours, **more})


def _first(reason: str) -> str:
    """Without the end of a log, which names folders."""
    return reason.partition("; ")[0]


def _figure(spread: Mapping[str, float], factor: float, rounds: int) -> Figure:
    median, low, high = (_round(spread[name] * factor) for name in ("median", "low", "high"))
    return Figure(median, low, high, rounds)


def _round(value: float) -> float:
    """Five digits: more are noise, and longer lines in a file that is kept."""
    return float(f"{value:.5g}")


def shared_goal(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The goal of rows that become one chart, which has room for one line; None if they have several or none."""
    goals = {row["goal"] for row in rows}
    return goals.pop() if len(goals) == 1 else None


def alone(value: float | None) -> Mapping[str, float] | None:
    """A single value as a spread."""
    return None if value is None else {"median": value, "low": value, "high": value}


def spread_of(values: Sequence[float]) -> Mapping[str, float] | None:
    """Several rounds as a spread; None of no values."""
    found = spread(values)
    return None if found is None else {"median": found.median, "low": found.low, "high": found.high}


def share_of(values: Sequence[float], share: float) -> Mapping[str, float] | None:
    """A percentile of many values as a spread without width."""
    return alone(percentile(values, share))
