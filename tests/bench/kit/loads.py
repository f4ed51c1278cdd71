"""Programs that make load: run on the processors of the load, waited for, and their report read.

The law: a program that does not end, or whose report cannot be read, is a BadReport with the end of its log.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from tests.bench.kit.faults import BadReport
from tests.kit.launched import ROOT, launched

SPARE_SECONDS: Final = 30.0
"""What a load may take longer than its time."""
_LOG_END: Final = 300

Report = TypeVar("Report")


def run_load(
    command: Sequence[str],
    *,
    log: Path,
    cpus: Collection[int],
    seconds: float,
    spare: float = SPARE_SECONDS,
    open_files: int | None = None,
) -> str:
    """Run a program to its end; what it printed. Raises BadReport."""
    with launched(command, log=log, cpus=cpus, folder=ROOT, open_files=open_files) as process:
        wait_ended(process, seconds + spare, log=log)
    return log.read_text(errors="replace")


@contextmanager
def running_module(
    module: str, *arguments: object, log: Path, cpus: Collection[int]
) -> Iterator[subprocess.Popen[bytes]]:
    """A module of ours as a process, for the time of a block."""
    with launched(module_command(module, *arguments), log=log, cpus=cpus, folder=ROOT) as process:
        yield process


def module_command(module: str, *arguments: object) -> list[str]:
    """The command of a module of ours."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def wait_ended(process: subprocess.Popen[bytes], seconds: float, *, log: Path) -> None:
    """Until a load has ended. Raises BadReport."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise BadReport(f"{log.name} did not end within {seconds:g} s") from None


def read_report(log: Path, parse: Callable[[str], Report]) -> Report:
    """The report in a log. Raises BadReport for one that `parse` refuses with ValueError or TypeError."""
    text = log.read_text(errors="replace")
    try:
        return parse(text)
    except (ValueError, TypeError):
        raise BadReport(f"{log.name} failed: {text[-_LOG_END:]!r}") from None


def log_end(log: Path) -> str:
    """The end of a log in one line, as the end of a message; empty for an empty log."""
    end = " ".join(log.read_text(errors="replace")[-_LOG_END:].split())
    return f"; its log ends: {end}" if end else ""
