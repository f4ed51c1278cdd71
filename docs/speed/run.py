"""One run of `make bench`: rows of figures, the programs, the machine; and the same as JSON. Pure.

The law: one shape for all benchmarks. A figure that was not measured has its reason, never a zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

SCHEMA: Final = 1
Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One program's figure over some rounds."""

    median: float
    low: float
    high: float
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was measured, of all programs that can do it: a chart."""

    bench: str
    """The name of the Bench."""
    id: str
    """Unique in the run, and the same in each: `dns-table-answers`."""
    title: str
    unit: str
    better: Better
    figures: Mapping[str, Figure]
    """By program, in the order of the chart."""
    about: str = ""
    ours: Sequence[str] = ("Switchback",)
    """The programs that are ours; the first is compared with the others."""
    goal: float | None = None
    """In the unit: ours is to be as good."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why a program has no figure."""

    @property
    def peers(self) -> Sequence[str]:
        """The programs of others that have a figure."""
        return [name for name in self.figures if name not in self.ours]

    def ratio(self, peer: str) -> float | None:
        """Ours divided by theirs, of medians; None if one of them is missing or below zero, or theirs is zero."""
        ours, theirs = self.figures.get(self.ours[0]), self.figures.get(peer)
        if peer in self.ours or ours is None or theirs is None:
            return None
        # A difference between two times may come out below zero: noise, which says nothing about who is ahead.
        if ours.median < 0 or theirs.median <= 0:
            return None
        return ours.median / theirs.median

    def is_ahead(self, peer: str) -> bool:
        """Whether ours is better than this one."""
        ratio = self.ratio(peer)
        return ratio is not None and (ratio > 1 if self.better == "higher" else ratio < 1)


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark of the run."""

    name: str
    title: str
    about: str
    seconds: float = 0.0
    rounds: int = 0
    trouble: str = ""
    """Why it was not measured, or not wholly."""
    failed: bool = False
    """Whether it should have been: a missing program is no failure."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the figures depend on; no name of a host."""

    processors: int
    model: str
    memory_gb: float
    kernel: str
    system: str
    beside: str = ""
    """What else ran there meanwhile."""
    load: float = 0.0
    """The load average before the run."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything of one run."""

    date: str
    """YYYY-MM-DD."""
    commit: str
    minutes: float
    machine: Machine
    programs: Mapping[str, str]
    """Versions, by program."""
    benches: Sequence[Bench]
    rows: Sequence[Row]
    schema: int = SCHEMA

    def rows_of(self, bench: str) -> Iterator[Row]:
        """The rows of a benchmark, in their order."""
        return (row for row in self.rows if row.bench == bench)

    def find(self, identifier: str) -> Row | None:
        """The row with this id."""
        return next((row for row in self.rows if row.id == identifier), None)


def parse_run(content: bytes) -> Run:
    """The run in a file. Raises ValueError, which names the wrong part."""
    run = msgspec.json.decode(content, type=Run)
    if run.schema != SCHEMA:
        raise ValueError(f"schema {run.schema} instead of {SCHEMA}")
    names = [bench.name for bench in run.benches]
    if strangers := sorted({row.bench for row in run.rows} - set(names)):
        raise ValueError(f"rows of unknown benchmarks: {', '.join(strangers)}")
    if len({row.id for row in run.rows}) != len(run.rows):
        raise ValueError("two rows have one id")
    return run


def format_run(run: Run) -> str:
    """JSON that people can read and compare."""
    return json.dumps(msgspec.to_builtins(run), indent=1, ensure_ascii=False) + "\n"
