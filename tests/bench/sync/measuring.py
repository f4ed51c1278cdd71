"""What is measured, one thing after the other, on one API server with its objects.

The law: every round has a fresh server of ours, and one that the machine disturbed is taken again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from tests.bench.kit.clock import read_seconds
from tests.bench.kit.faults import CannotServe
from tests.bench.sync import report
from tests.bench.sync.answered import create_and_ask
from tests.bench.sync.bench import Bench
from tests.bench.sync.beside import changing, probing, wait_answered
from tests.bench.sync.changing import restore
from tests.bench.sync.contents import INGRESSES, MIXED, Contents
from tests.bench.sync.memory import read_memory, read_proportional, sampled
from tests.bench.sync.ours import KUBECONFIG, POD, Way
from tests.bench.sync.report import Row
from tests.bench.sync.rows import (
    changed_rows,
    created_rows,
    informer_rows,
    kind_rows,
    mixed_rows,
    probed_rows,
    start_rows,
)
from tests.bench.sync.samples import Changed, Created, Probed, Start, Use
from tests.kit.launched import ROOT, launched

CREATIONS: Final = 10.0
"""A second."""
_SETTLE_SECONDS: Final = 2.0
"""Until memory is read: what is freed after a list is no part of it."""
_INFORMER_SECONDS: Final = 600.0
_SYNCED: Final = "synced"
"""What informer.py says; it is not imported, because it imports the package that it is about."""
_LEAST_SECONDS: Final = 0.2
_SAMPLES: Final = 60
"""Of the memory, while names change."""


def measure_start(bench: Bench) -> list[Row]:
    """Time from start to ready, and memory."""
    return start_rows(bench.size, bench.take(partial(_start, bench, POD)))


def measure_kubeconfig(bench: Bench) -> list[Row]:
    """The same on a computer of somebody's, whose kubeconfig takes the `kubernetes` package to read."""
    starts = bench.take(partial(_start, bench, KUBECONFIG))
    return start_rows(bench.size, starts, suffix=", by a kubeconfig")


def _start(bench: Bench, way: Way) -> Start:
    before = read_seconds(bench.api.process_id)
    with bench.server(way=way) as ours:
        use = Use(ours.wait_ready(), ours.read_clock())
        served = read_seconds(bench.api.process_id) - before
        for number in (0, bench.size - 1):
            wait_answered(ours, bench.contents.hostname_of(number))
        time.sleep(min(_SETTLE_SECONDS, bench.seconds))
        return Start(use, ours.read_memory(), read_proportional(ours.process.pid), served)


def measure_answers(bench: Bench) -> list[Row]:
    """How long names of the table wait for their answer while all Ingresses are read."""
    return probed_rows(bench.size, report.SYNC_P99, bench.take(partial(_probe_sync, bench)))


def _probe_sync(bench: Bench) -> Probed:
    with bench.server() as ours:
        serving = ours.wait_serving()
        seconds = max(_LEAST_SECONDS, ours.wait_ready() - serving)
    with bench.folder() as folder, bench.server() as ours:
        # Started beside it, so that the first answer is the first that the server gives.
        with probing(ours, folder, cpus=bench.cpus.load, seconds=seconds) as probes:
            ours.wait_serving()
            with ours.using() as uses:
                ours.wait_ready()
        return Probed(uses[0], probes[0])


def measure_creations(bench: Bench) -> list[Row]:
    """From created to answered."""
    return created_rows(bench.size, bench.take(partial(_create, bench)))


def _create(bench: Bench) -> Created:
    with bench.server() as ours:
        ours.wait_ready()
        with ours.using() as uses:
            how: dict[str, Any] = {"rate": CREATIONS, "seconds": bench.seconds}
            creations = create_and_ask(bench.api, ours.port, object_of=bench.contents.object_of, **how)
        return Created(uses[0], creations)


def measure_changes(bench: Bench) -> list[Row]:
    """Answers while names change, how many changes there really were, how far behind we are at their end, memory."""
    return changed_rows(bench.size, bench.take(partial(_change, bench)))


def _change(bench: Bench) -> Changed:
    how: dict[str, Any] = {"cpus": bench.cpus.load, "seconds": bench.seconds}
    with bench.folder() as folder, bench.server() as ours:
        ours.wait_ready()
        with (
            changing(bench.api.etcd_port, folder, count=bench.size, **how) as changes,
            ours.using() as uses,
            sampled(ours.process.pid, every=bench.seconds / _SAMPLES) as memory,
            probing(ours, folder, **how) as probes,
        ):
            pass
        lag = wait_answered(ours, changes[0].last)
    restore(bench.api.etcd_port, count=bench.size)
    return Changed(Probed(uses[0], probes[0]), changes[0].done / changes[0].seconds, lag, memory)


def measure_informer(bench: Bench) -> list[Row]:
    """The kubernetes package's own informer on the same objects."""
    with bench.folder() as folder:
        log = folder / "log"
        command = [sys.executable, "-m", "tests.bench.sync.informer", str(bench.api.kubeconfig), str(bench.size)]
        started = time.monotonic()
        with launched(command, log=log, cpus=bench.cpus.server, folder=ROOT) as process:
            while _SYNCED not in log.read_text():
                if process.poll() is not None or time.monotonic() - started > _INFORMER_SECONDS:
                    raise CannotServe(f"the informer is not ready: {log.read_text()[-300:]}")
                time.sleep(0.01)
            seconds = time.monotonic() - started
            time.sleep(min(_SETTLE_SECONDS, bench.seconds))
            return informer_rows(bench.size, seconds, read_memory(process.pid))


def measure_mixed(bench: Bench) -> list[Row]:
    """Start, memory, answers meanwhile and creations with objects of seven kinds."""
    starts = start_rows(bench.size, bench.take(partial(_start, bench, POD)))
    probed = probed_rows(bench.size, report.SYNC_P99, bench.take(partial(_probe_sync, bench)))
    rounds = bench.take(partial(_create, bench))
    return mixed_rows(starts, probed, [*created_rows(bench.size, rounds), *kind_rows(bench.size, rounds)])


class Measurement(NamedTuple):
    """One of those that can be asked for."""

    name: str
    about: str
    take: Callable[[Bench], list[Row]]
    contents: Contents = INGRESSES


MEASUREMENTS: Final = (
    Measurement("start", "time from start to ready, and memory", measure_start),
    Measurement("kubeconfig", "the same, started with --kubeconfig", measure_kubeconfig),
    Measurement("answers", "p99 of table answers while all Ingresses are read", measure_answers),
    Measurement("creations", "from an Ingress created to its name answered, at 10 a second", measure_creations),
    Measurement("changes", "p99 of table answers during 1,000 changes a second, and memory", measure_changes),
    Measurement("informer", "the kubernetes package's informer on the same objects", measure_informer),
    Measurement("mixed", "start, memory, answers and creations with objects of seven kinds", measure_mixed, MIXED),
)
