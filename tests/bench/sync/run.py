"""One run of the benchmark: for each size an API server that is filled, and then everything that was asked for."""

from __future__ import annotations

import itertools
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
from tests.bench.sync.contents import INGRESSES, Contents
from tests.bench.sync.filling import api_server
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
    plans = plan(options.measurements)
    steps = sum(1 + len(measurements) + options.profile for measurements in plans.values())
    progress = Progress(len(options.sizes) * steps)
    rows: list[Row] = []
    profiles: list[str] = []
    try:
        for size, (contents, measurements) in itertools.product(options.sizes, plans.items()):
            with _filled(options, size, contents, cpus, progress) as bench:
                for measurement in measurements:
                    progress.step(f"{size:,}: {measurement.about}")
                    rows += _measure(measurement, bench, progress)
                if options.profile:
                    progress.step(f"{size:,}: profile")
                    profiles.append(profile(bench))
    finally:
        progress.finish()
    return Found(rows, profiles)


def plan(measurements: Sequence[Measurement]) -> dict[Contents, list[Measurement]]:
    """The measurements by what the API server has; without any, it gets Ingresses."""
    plans: dict[Contents, list[Measurement]] = {} if measurements else {INGRESSES: []}
    for one in measurements:
        plans.setdefault(one.contents, []).append(one)
    return plans


@contextmanager
def _filled(options: Options, size: int, contents: Contents, cpus: Cpus, progress: Progress) -> Iterator[Bench]:
    """An API server with its objects, on the processors of the load."""
    progress.step(f"{size:,}: an API server with so many objects ({contents.name})")
    with ExitStack() as stack:
        folder = options.data and options.data / _folder_name(contents, size)
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-sync-api-")))
        # To fill it, and not to be measured, it may have the whole machine.
        with api_server(folder, cpus=os.sched_getaffinity(0)) as api:
            contents.fill(api, size, tell=partial(_tell_filled, progress, size))
        # Whoever waits for the server and looks at it must not do so on its processor.
        stack.enter_context(pinned(cpus.load))
        api = stack.enter_context(api_server(folder, cpus=cpus.load))
        contents.wait_cached(api)
        upstream = stack.enter_context(knowing_nothing())
        how = (cpus, options.rounds, options.tries, options.seconds, upstream, options.realtime)
        yield Bench(api, contents, size, *how)


def _folder_name(contents: Contents, size: int) -> str:
    """Ingresses are in a folder of their number alone, where earlier runs have left them."""
    return str(size) if contents is INGRESSES else f"{contents.name}-{size}"


def _tell_filled(progress: Progress, size: int, done: int) -> None:
    if done % _TOLD == 0:
        progress.note(f"{done:,} of {size:,}")


def _measure(measurement: Measurement, bench: Bench, progress: Progress) -> list[Row]:
    try:
        return measurement.take(bench)
    except (CannotServe, BadReport) as error:
        progress.note(f"{bench.size:,}: {measurement.about}: not measured: {error}")
        return [Row(bench.size, measurement.about, None, "", fault=str(error))]
