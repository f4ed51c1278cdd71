"""What is measured, one thing after the other, on one API server with its Ingresses.

The law: every measurement has a fresh server of ours, and every figure its row.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.clock import CpuTime, read_clock
from tests.bench.cpus import Cpus
from tests.bench.dns.checking import CannotServe
from tests.bench.dns.prober import Probe
from tests.bench.figures import percentile, spread
from tests.bench.launched import ROOT, launched
from tests.bench.sync import report
from tests.bench.sync.answered import create_and_ask
from tests.bench.sync.beside import changing, probe, wait_answered
from tests.bench.sync.changing import restore
from tests.bench.sync.filling import hostname_of
from tests.bench.sync.memory import Memory, read_memory
from tests.bench.sync.ours import KUBECONFIG, POD, Ours, Way, serving
from tests.bench.sync.report import Row, make_row
from tests.peers.apiserver import ApiServer

CREATIONS: Final = 10.0
"""A second."""
_SETTLE_SECONDS: Final = 2.0
_INFORMER_SECONDS: Final = 600.0
_LEAST_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how it is measured."""

    api: ApiServer
    size: int
    cpus: Cpus
    rounds: int
    seconds: float
    upstream: int

    @contextmanager
    def folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="bench-sync-") as name:
            yield Path(name)

    @contextmanager
    def server(self, *, way: Way = POD, profile: Path | None = None) -> Iterator[Ours]:
        with (
            self.folder() as folder,
            serving(self.api, folder, cpus=self.cpus.server, upstream=self.upstream, way=way, profile=profile) as ours,
        ):
            yield ours


def measure_start(bench: Bench, *, way: Way = POD) -> list[Row]:
    """Time from start to ready, and memory."""
    seconds: list[float] = []
    clocks: list[CpuTime] = []
    memories: list[Memory] = []
    for _ in range(bench.rounds):
        with bench.server(way=way) as ours:
            seconds.append(ours.wait_ready())
            clocks.append(read_clock(ours.process.pid))
            for number in (0, bench.size - 1):
                wait_answered(ours, hostname_of(number))
            time.sleep(_SETTLE_SECONDS)
            memories.append(read_memory(ours.process.pid))
    suffix = "" if way is POD else f", by a {way.name}"
    return [
        make_row(bench.size, report.READY + suffix, spread(seconds), "s"),
        make_row(bench.size, "its processor time until then" + suffix, spread([one.total for one in clocks]), "s"),
        make_row(bench.size, "its time in the queue until then" + suffix, spread([one.queued for one in clocks]), "s"),
        make_row(bench.size, report.RESIDENT + suffix, spread([one.resident for one in memories]), "MiB"),
        make_row(bench.size, report.PEAK + suffix, spread([one.peak for one in memories]), "MiB"),
    ]


def measure_kubeconfig(bench: Bench) -> list[Row]:
    """The same on a computer of somebody's, whose kubeconfig takes the `kubernetes` package to read."""
    return measure_start(bench, way=KUBECONFIG)


def measure_answers(bench: Bench) -> list[Row]:
    """How long names of the table wait for their answer while all Ingresses are read."""
    probes = []
    for _ in range(bench.rounds):
        with bench.server() as ours:
            left = ours.wait_ready() - ours.wait_serving()
        with bench.folder() as folder, bench.server() as ours:
            ours.wait_serving()
            probes.append(probe(ours, folder, cpus=bench.cpus.load, seconds=max(left, _LEAST_SECONDS)))
    return _probe_rows(bench, report.SYNC_P99, probes)


def measure_creations(bench: Bench) -> list[Row]:
    """From created to answered."""
    with bench.server() as ours:
        ours.wait_ready()
        creations = create_and_ask(bench.api, ours.port, rate=CREATIONS, seconds=bench.seconds * bench.rounds)
    answered = [one.answered * 1000 for one in creations]
    created = [one.created * 1000 for one in creations]
    return [
        _percentile_row(bench, report.ANSWERED_P50, answered, 0.5),
        _percentile_row(bench, report.ANSWERED_P99, answered, 0.99),
        _percentile_row(bench, "the API server's own time to create, p50", created, 0.5),
    ]


def measure_changes(bench: Bench) -> list[Row]:
    """Answers while names change, how many changes there really were, and how far behind we are at their end."""
    probes, rates, lags, growths = [], [], [], []
    for _ in range(bench.rounds):
        with bench.folder() as folder, bench.server() as ours:
            ours.wait_ready()
            before = read_memory(ours.process.pid).resident
            etcd, seconds, cpus = bench.api.etcd_port, bench.seconds, bench.cpus.load
            with changing(etcd, folder, count=bench.size, cpus=cpus, seconds=seconds) as changes:
                probes.append(probe(ours, folder, cpus=cpus, seconds=seconds))
            rates.append(changes[0].done / changes[0].seconds)
            lags.append(wait_answered(ours, changes[0].last) * 1000)
            growths.append(read_memory(ours.process.pid).resident - before)
        restore(bench.api.etcd_port, count=bench.size)
    return [
        *_probe_rows(bench, report.CHANGES_P99, probes),
        make_row(bench.size, "changes made a second", spread(rates), "1/s"),
        make_row(bench.size, "last change to its answer", spread(lags), "ms"),
        make_row(bench.size, "memory gained by the changes", spread(growths), "MiB"),
    ]


def measure_informer(bench: Bench) -> list[Row]:
    """The kubernetes package's own informer on the same objects."""
    with bench.folder() as folder:
        log = folder / "log"
        command = [sys.executable, "-m", "tests.bench.sync.informer", str(bench.api.kubeconfig), str(bench.size)]
        started = time.monotonic()
        with launched(command, log=log, cpus=bench.cpus.server, folder=ROOT) as process:
            while b"synced" not in log.read_bytes():
                if process.poll() is not None or time.monotonic() - started > _INFORMER_SECONDS:
                    raise CannotServe(f"the informer is not ready: {log.read_text()[-300:]}")
                time.sleep(0.01)
            seconds = time.monotonic() - started
            time.sleep(_SETTLE_SECONDS)
            memory = read_memory(process.pid)
    return [
        make_row(bench.size, "kubernetes informer: start to synced", spread([seconds]), "s"),
        make_row(bench.size, "kubernetes informer: resident", spread([memory.resident]), "MiB"),
        make_row(bench.size, "kubernetes informer: peak resident", spread([memory.peak]), "MiB"),
    ]


MEASUREMENTS: Final[dict[str, tuple[Callable[[Bench], list[Row]], str]]] = {
    "start": (measure_start, "time from start to ready, and memory"),
    "kubeconfig": (measure_kubeconfig, "the same, started with --kubeconfig"),
    "answers": (measure_answers, "p99 of table answers while all Ingresses are read"),
    "creations": (measure_creations, "from an Ingress created to its name answered, at 10 a second"),
    "changes": (measure_changes, "p99 of table answers during 1,000 changes a second"),
    "informer": (measure_informer, "the kubernetes package's informer on the same objects"),
}


def _probe_rows(bench: Bench, what: str, probes: Sequence[Probe]) -> list[Row]:
    base = what.removesuffix(", p99")
    return [
        make_row(bench.size, what, spread([one.p99 for one in probes if one.p99 is not None]), "ms"),
        make_row(bench.size, f"{base}, worst", spread([one.worst for one in probes if one.worst is not None]), "ms"),
        make_row(bench.size, f"{base}, lost", spread([float(one.lost) for one in probes]), ""),
    ]


def _percentile_row(bench: Bench, what: str, values: Sequence[float], share: float) -> Row:
    found = percentile(values, share)
    return make_row(bench.size, what, spread([] if found is None else [found]), "ms")
