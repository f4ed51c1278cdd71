"""Where our server spends its time under load: perf(1) for functions, strace(1) for system calls.

The law: a profile is taken apart from the measurement, because both programs slow down the server.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tests.bench.kit.faults import BadReport, CannotServe
from tests.bench.kit.rounds import Named
from tests.kit.launched import end_session, launched
from tests.kit.programs import find_program
from tests.kit.progress import Progress

_PERF_RATE: Final = "1999"
_LEAST_SHARE: Final = "0.8"
"""Percent; functions below are excluded."""
_ATTACH_SECONDS: Final = 0.5

Workload = TypeVar("Workload", bound=Named)


@dataclass(frozen=True, slots=True)
class Profiled:
    """A process to look at, and a load for it that says what was done."""

    pid: int
    folder: Path
    cpus: Collection[int]
    """Of the tracer."""
    load: Callable[[], str]


def make_profiles(
    workloads: Sequence[Workload], profile: Callable[[Workload], str], *, progress: Progress
) -> list[str]:
    """A text for each workload that could be profiled."""
    profiles = []
    for workload in workloads:
        progress.step(f"profile of {workload.name}")
        try:
            profiles.append(f"profile of ours, {workload.name}\n\n{profile(workload)}")
        except (CannotServe, BadReport) as error:
            progress.note(f"{workload.name} has no profile: {error}")
    return profiles


def profile_process(profiled: Profiled) -> str:
    """What both programs say, each if it is installed. Raises BadReport."""
    parts = []
    for name, run in (("perf", _perf), ("strace", _strace)):
        program = find_program(name)
        parts.append(run(program, profiled) if program else f"{name} is not installed\n")
    return "\n".join(parts)


def _perf(program: str, profiled: Profiled) -> str:
    data = profiled.folder / "perf.data"
    record = [program, "record", "-q", "-F", _PERF_RATE, "-o", str(data), "-p", str(profiled.pid)]
    done = _load_under(record, profiled)
    shape = ["--stdio", "--no-children", "--percent-limit", _LEAST_SHARE, "--sort", "dso,symbol"]
    shown = subprocess.run([program, "report", "-i", str(data), *shape], capture_output=True, text=True, check=False)
    rows = [line for line in shown.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return f"perf: {done}\n" + "".join(f"{row.rstrip(' -')}\n" for row in rows or [shown.stderr.strip()])


def _strace(program: str, profiled: Profiled) -> str:
    summary = profiled.folder / "strace.out"
    trace = [program, "-c", "-f", "-S", "calls", "-U", "calls,errors,name", "-o", str(summary)]
    done = _load_under([*trace, "-p", str(profiled.pid)], profiled)
    return f"strace: calls for {done}, fewer a batch than without strace\n{summary.read_text()}"


def _load_under(tracer: Sequence[str], profiled: Profiled) -> str:
    """Make load while a tracer is attached; what was done."""
    with launched(tracer, log=profiled.folder / "tracer.log", cpus=profiled.cpus) as process:
        time.sleep(_ATTACH_SECONDS)
        done = profiled.load()
        # Both write their findings when they are asked to end.
        end_session(process)
    return done
