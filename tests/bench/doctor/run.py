"""One run of the benchmark: the scene, and then all commands of a round one after the other.

The law: the rounds are interleaved, so that what the machine does to one command it does to all; the first round only
compiles and fills caches.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.doctor.commands import MeasuredCommand
from tests.bench.doctor.objects import Size
from tests.bench.doctor.report import make_rows
from tests.bench.doctor.running import KUBECONFIG, POD, Runner
from tests.bench.doctor.samples import Sample
from tests.bench.doctor.scene import running_scene
from tests.bench.kit.command_rows import Row
from tests.bench.kit.cpus import split_cpus
from tests.bench.kit.faults import CannotServe
from tests.kit.launched import ROOT
from tests.kit.progress import Progress


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how often."""

    commands: Sequence[MeasuredCommand]
    size: Size = field(default_factory=Size)
    rounds: int = 5
    beside: Path | None = None
    """Another checkout, whose commands take turns with ours."""
    data: Path | None = None
    """Where the API server's data is kept; None: nowhere."""
    pin: bool = True


@dataclass(slots=True)
class _Taken:
    ours: list[Sample] = field(default_factory=list)
    beside: list[Sample] = field(default_factory=list)
    fault: str = ""


def run_bench(options: Options) -> list[Row]:
    """Everything that was asked for."""
    cpus = split_cpus(os.sched_getaffinity(0), pin=options.pin)
    progress = Progress(1 + options.rounds)
    taken: dict[tuple[str, str], _Taken] = {}
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-doctor-")))
            progress.step(f"a cluster with {options.size}")
            scene = stack.enter_context(running_scene(options.data, options.size, cpus, progress))
            runner = Runner(scene, folder, cpus.server)
            for number in range(options.rounds + 1):
                if number:
                    progress.step(f"round {number}")
                for command, way in _turns(options):
                    one = taken.setdefault((command.name, way), _Taken())
                    _take(runner, command, way, one, options.beside, keep=number > 0)
    finally:
        progress.finish()
    return [row for key, one in taken.items() for row in _rows(*key, one, has_goals=options.size == Size())]


def _turns(options: Options) -> Iterator[tuple[MeasuredCommand, str]]:
    for command in options.commands:
        yield from itertools.product([command], (KUBECONFIG, POD) if command.asks_cluster else ("",))


def _take(
    runner: Runner, command: MeasuredCommand, way: str, taken: _Taken, beside: Path | None, *, keep: bool
) -> None:
    if taken.fault:
        return
    try:
        ours = runner.run(command, way=way, checkout=ROOT)
        theirs = runner.run(command, way=way, checkout=beside) if beside else None
    except CannotServe as error:
        taken.fault = str(error)
        return
    if keep:
        taken.ours.append(ours)
        taken.beside += [theirs] if theirs else []


def _rows(command: str, way: str, taken: _Taken, *, has_goals: bool) -> list[Row]:
    if taken.fault:
        return [Row(command, "everything", None, "", fault=taken.fault, way=way)]
    return make_rows(command, way, taken.ours, taken.beside, has_goals=has_goals)
