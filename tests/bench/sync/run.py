"""One run of the benchmark: for each size an API server that is filled, and then everything that was asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.cpus import Cpus, split_cpus
from tests.bench.dns.checking import CannotServe
from tests.bench.dns.dnsperf import BadReport
from tests.bench.progress import Progress
from tests.bench.sync.filling import api_server, fill
from tests.bench.sync.measuring import MEASUREMENTS, Bench
from tests.bench.sync.profiling import profile
from tests.bench.sync.report import Row
from tests.bench.sync.upstream import knowing_nothing

_TOLD: Final = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and for how long."""

    sizes: Sequence[int]
    measurements: Sequence[str]
    rounds: int
    seconds: float
    data: Path | None = None
    """Where the API servers' data is kept; None: nowhere."""
    pin: bool = True
    profile: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a run found."""

    rows: Sequence[Row]
    profiles: Sequence[str]

    @property
    def has_any(self) -> bool:
        """Whether anything was measured."""
        return any(row.figure is not None for row in self.rows)


def run_bench(options: Options) -> Found:
    """Everything that was asked for."""
    cpus = split_cpus(os.sched_getaffinity(0), pin=options.pin)
    progress = Progress(len(options.sizes) * (1 + len(options.measurements) + options.profile))
    rows: list[Row] = []
    profiles: list[str] = []
    try:
        for size in options.sizes:
            with _filled(options, size, cpus, progress) as bench:
                for name in options.measurements:
                    progress.step(f"{size:,}: {MEASUREMENTS[name][1]}")
                    rows += _measure(name, bench, progress)
                if options.profile:
                    progress.step(f"{size:,}: profile")
                    profiles.append(profile(bench))
    finally:
        progress.finish()
    return Found(rows, profiles)


@contextmanager
def _filled(options: Options, size: int, cpus: Cpus, progress: Progress) -> Iterator[Bench]:
    """An API server with its Ingresses, on the processors of the load."""
    progress.step(f"{size:,}: an API server with so many Ingresses")
    with ExitStack() as stack:
        folder = options.data and options.data / str(size)
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-sync-api-")))
        # To fill it, and not to be measured, it may have the whole machine.
        with api_server(folder, cpus=os.sched_getaffinity(0)) as api:
            fill(api, size, tell=lambda done: progress.note(f"{done:,} of {size:,}") if done % _TOLD == 0 else None)
        api = stack.enter_context(api_server(folder, cpus=cpus.load))
        upstream = stack.enter_context(knowing_nothing())
        yield Bench(api, size, cpus, options.rounds, options.seconds, upstream)


def _measure(name: str, bench: Bench, progress: Progress) -> list[Row]:
    measure, about = MEASUREMENTS[name]
    try:
        return measure(bench)
    except (CannotServe, BadReport) as error:
        progress.note(f"{bench.size:,}: {about}: not measured: {error}")
        return [Row(bench.size, about, None, "", fault=str(error))]
