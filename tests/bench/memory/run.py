"""Starts each command in turn, in rounds, and another checkout's beside ours.

The law: a round measures every command once in each checkout, so that what else the machine does falls on all alike. A
first start that does not count compiles the modules, which an image has compiled: the compiler's memory stays with its
process. A command that does not start costs its own rows, not the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.kit.clock import read_seconds
from tests.bench.kit.command_rows import Row
from tests.bench.memory.commands import MeasuredCommand
from tests.bench.memory.report import RESIDENT, make_rows
from tests.bench.memory.samples import Sample, parse_sample
from tests.kit.launched import ROOT, launched
from tests.kit.ports import free_ports
from tests.kit.processes import StartFailed, wait_for


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured."""

    commands: Sequence[MeasuredCommand]
    rounds: int = 5
    rest: float = 2.0
    """Seconds from the first answer until memory is read."""
    beside: Path | None = None
    python: Path = Path(sys.executable)
    """The interpreter of the commands."""


def run_bench(options: Options) -> list[Row]:
    """The rows of all commands."""
    return [row for command in options.commands for row in _measure(command, options)]


def _measure(command: MeasuredCommand, options: Options) -> list[Row]:
    checkouts = [ROOT, *([options.beside] if options.beside else [])]
    samples: dict[Path, list[Sample]] = {checkout: [] for checkout in checkouts}
    try:
        with TemporaryDirectory(prefix="bench-bytecode-") as bytecode:
            take = partial(take_sample, command, python=options.python, bytecode=Path(bytecode))
            for checkout in checkouts:
                take(checkout=checkout, rest=0.0)
            for number in range(options.rounds):
                for checkout in checkouts if number % 2 else reversed(checkouts):
                    samples[checkout].append(take(checkout=checkout, rest=options.rest))
    except (StartFailed, OSError) as error:
        return [Row(command.name, RESIDENT, None, "MB", fault=" ".join(str(error).split()))]
    others = samples[options.beside] if options.beside else ()
    return make_rows(command.name, command.goals, samples[ROOT], others)


def take_sample(command: MeasuredCommand, *, checkout: Path, rest: float, python: Path, bytecode: Path) -> Sample:
    """Start a command, wait for its first answer, let it rest, and end it. Raises StartFailed."""
    port, admin = free_ports(2)
    environment = {
        "PYTHONPATH": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bytecode),
    }
    with TemporaryDirectory(prefix="bench-memory-") as folder, command.surroundings(Path(folder)) as more:
        log = Path(folder) / "log"
        words = [str(python), "-m", *command.words(port, admin), *more]
        with launched(
            words, log=log, cpus=os.sched_getaffinity(0), folder=checkout, environment=environment
        ) as process:
            wait_for(lambda: command.answers(port, admin), process=process, log=log)
            cpu = read_seconds(process.pid)
            time.sleep(rest)
            rollup = Path("/proc") / str(process.pid) / "smaps_rollup"
            return parse_sample(rollup.read_text(), cpu=cpu)
