"""One sample of one server under one workload, and the order in which all are taken.

The law: all servers of all workloads are measured in turn, so that other work of the machine strikes all alike.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from tests.bench.dns.dnsperf import run_dnsperf
from tests.bench.dns.peers import Peer, peers_for
from tests.bench.dns.prober import RATE, Probe, parse_probe
from tests.bench.dns.rig import Rig
from tests.bench.dns.samples import AtRest, Sample
from tests.bench.dns.workloads import Workload
from tests.bench.kit.clock import read_clock
from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import CannotServe
from tests.bench.kit.loads import module_command, read_report, run_load
from tests.bench.kit.rig import Server
from tests.bench.kit.rounds import Measured, measure_quietly, measure_rounds
from tests.kit.progress import Progress

_PROBE_SECONDS: Final = 1.0
_WARM_UP_SECONDS: Final = 1.0

Pair = tuple[Workload, Peer]


def pairs_of(workloads: Sequence[Workload], *, servers: Collection[str] = (), more: Sequence[Peer] = ()) -> list[Pair]:
    """The servers that are installed, under each workload, by the rules of `peers_for`."""
    return [(workload, peer) for workload in workloads for peer in peers_for(workload.name, servers=servers, more=more)]


def measure_all(
    rig: Rig, pairs: Sequence[Pair], *, dnsperf: str, rounds: int, seconds: float, progress: Progress
) -> Measured[Sample]:
    """Start and warm up all servers, then measure them in rounds."""

    def measure(workload: Workload, peer: Peer, lasting: float = seconds) -> Sample:
        return _measure(rig, workload, peer, dnsperf=dnsperf, seconds=lasting)

    measured: Measured[Sample] = Measured()
    measure_rounds(
        measured,
        pairs,
        warm_up=lambda workload, peer: measure(workload, peer, min(_WARM_UP_SECONDS, seconds)),
        measure=lambda workload, peer: measure_quietly(lambda: measure(workload, peer), lambda one: one.queued),
        rounds=rounds,
        progress=progress,
    )
    return measured


def _measure(rig: Rig, workload: Workload, peer: Peer, *, dnsperf: str, seconds: float) -> Sample:
    server = rig.server(peer, workload)
    queries = rig.queries(workload)
    if workload.rate is not None:
        return _rest(server, queries, rate=workload.rate, seconds=seconds, cpus=rig.cpus)
    before = read_clock(server.session)
    report = run_dnsperf(dnsperf, port=server.port, queries=queries, seconds=seconds, cpus=rig.cpus)
    cpu = read_clock(server.session) - before
    if not report.completed:
        raise CannotServe("it answered no query under load")
    return Sample(report, cpu, run_prober(server, queries, seconds=min(_PROBE_SECONDS, seconds), cpus=rig.cpus))


def _rest(server: Server, queries: Path, *, rate: int, seconds: float, cpus: Cpus) -> Sample:
    """A server without any other load, whose caches go cold between two queries."""
    before, begun = read_clock(server.session), time.monotonic()
    probe = run_prober(server, queries, seconds=seconds, cpus=cpus, rate=rate)
    cpu, took = read_clock(server.session) - before, time.monotonic() - begun
    if probe.lost == probe.sent:
        raise CannotServe("it answered no query")
    return Sample(AtRest(probe.sent - probe.lost, took), cpu, probe)


def run_prober(server: Server, queries: Path, *, seconds: float, cpus: Cpus, rate: int = RATE) -> Probe:
    """Ask a server at a low rate from a process of its own. Raises BadReport."""
    log = server.folder / "prober"
    command = module_command("tests.bench.dns.prober", server.port, queries, rate, seconds)
    run_load(command, log=log, cpus=cpus.load, seconds=seconds)
    return read_report(log, parse_probe)
