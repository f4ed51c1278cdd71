"""One run of the benchmark: for each size an API server that is filled, and then everything that was asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.kit.cpus import Cpus, pinned, split_cpus
from tests.bench.kit.faults import BadReport, CannotServe
from tests.bench.sync.bench import Bench
from tests.bench.sync.changing import restore
from tests.bench.sync.filling import api_server, fill
from tests.bench.sync.measuring import Measurement
from tests.bench.sync.profiling import profile
from tests.bench.sync.report import Row
from tests.bench.sync.upstream import knowing_nothing
from tests.kit.progress import Progress

_TOLD: Final = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and for how long."""

    sizes: Sequence[int]
    measurements: Sequence[Measurement]
    rounds: int
    tries: int
    """Of a round that others disturb."""
    seconds: float
    data: Path | None = None
    """Where the API servers' data is kept; None: nowhere."""
    pin: bool = True
    realtime: bool = False
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
                for measurement in options.measurements:
                    progress.step(f"{size:,}: {measurement.about}")
                    rows += _measure(measurement, bench, progress)
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
            fill(api, size, tell=partial(_tell_filled, progress, size))
            # A run that was ended in the middle of its changes leaves them behind.
            restore(api.etcd_port, count=size)
        # Whoever waits for the server and looks at it must not do so on its processor.
        stack.enter_context(pinned(cpus.load))
        api = stack.enter_context(api_server(folder, cpus=cpus.load))
        upstream = stack.enter_context(knowing_nothing())
        yield Bench(api, size, cpus, options.rounds, options.tries, options.seconds, upstream, options.realtime)


def _tell_filled(progress: Progress, size: int, done: int) -> None:
    if done % _TOLD == 0:
        progress.note(f"{done:,} of {size:,}")


def _measure(measurement: Measurement, bench: Bench, progress: Progress) -> list[Row]:
    try:
        return measurement.take(bench)
    except (CannotServe, BadReport) as error:
        progress.note(f"{bench.size:,}: {measurement.about}: not measured: {error}")
        return [Row(bench.size, measurement.about, None, "", fault=str(error))]
