"""Rounds: every server under every workload, one after the other, then all again.

The law: round robin, so that what else the machine does strikes all servers alike. Where it took the processor from a
server, that round is measured again, whatever its figure was. A fault of one server ends its measurement alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.dns.checking import CannotServe
from tests.bench.dns.dnsperf import BadReport, run_dnsperf
from tests.bench.dns.peers import Peer, peers_for
from tests.bench.dns.prober import RATE, Probe, parse_probe
from tests.bench.dns.rig import Rig, Server
from tests.bench.dns.samples import Sample
from tests.bench.dns.workloads import Workload
from tests.bench.kit.clock import read_clock
from tests.bench.kit.cpus import Cpus
from tests.kit.launched import ROOT, launched
from tests.kit.progress import Progress

_PROBE_SECONDS: Final = 1.0
_WARM_UP_SECONDS: Final = 1.0
_SPARE_SECONDS: Final = 20.0

_NOISY: Final = 0.1
"""The share of the time in the queue above which a round says more about the machine than about the server."""
_TRIES: Final = 3

Key = tuple[str, str]
"""The names of a workload and a server."""


@dataclass(slots=True)
class Measured:
    """What came out, in the order of the workloads."""

    samples: dict[Key, list[Sample]]
    faults: dict[Key, str] = field(default_factory=dict)
    """Why a server was not measured (any more)."""


def count_steps(workloads: Sequence[Workload], *, rounds: int) -> int:
    """How often measure_rounds steps: a start with its warm-up and some rounds, each server and workload."""
    return sum(len(peers_for(workload.name)) for workload in workloads) * (1 + rounds)


def measure_rounds(
    rig: Rig, workloads: Sequence[Workload], *, dnsperf: str, rounds: int, seconds: float, progress: Progress
) -> Measured:
    """Start and warm up all servers, then measure them in rounds."""
    pairs = [(workload, peer) for workload in workloads for peer in peers_for(workload.name)]
    measured = Measured({(workload.name, peer.label): [] for workload, peer in pairs})
    for turn in range(rounds + 1):
        for workload, peer in pairs:
            key = workload.name, peer.label
            progress.step(f"{workload.name}: {peer.label}, {f'round {turn}' if turn else 'start and warm-up'}")
            if key in measured.faults:
                continue
            try:
                if turn:
                    sample = _measure_quietly(rig, workload, peer, dnsperf=dnsperf, seconds=seconds)
                    measured.samples[key].append(sample)
                else:
                    _measure(rig, workload, peer, dnsperf=dnsperf, seconds=min(_WARM_UP_SECONDS, seconds))
            except (CannotServe, BadReport) as error:
                progress.note(f"{workload.name}: {peer.label} is not measured: {error}")
                measured.faults[key] = str(error)
    return measured


def _measure_quietly(rig: Rig, workload: Workload, peer: Peer, *, dnsperf: str, seconds: float) -> Sample:
    """The first of a few tries that the machine left alone, or the one that it disturbed least."""
    tries: list[Sample] = []
    for _ in range(_TRIES):
        tries.append(_measure(rig, workload, peer, dnsperf=dnsperf, seconds=seconds))
        if tries[-1].queued <= _NOISY:
            break
    return min(tries, key=lambda sample: sample.queued)


def _measure(rig: Rig, workload: Workload, peer: Peer, *, dnsperf: str, seconds: float) -> Sample:
    server = rig.server(peer, workload)
    queries = rig.queries(workload)
    before = read_clock(server.session)
    report = run_dnsperf(dnsperf, port=server.port, queries=queries, seconds=seconds, cpus=rig.cpus)
    cpu = read_clock(server.session) - before
    if not report.completed:
        raise CannotServe("it answered no query under load")
    return Sample(report, cpu, run_prober(server, queries, seconds=min(_PROBE_SECONDS, seconds), cpus=rig.cpus))


def run_prober(server: Server, queries: Path, *, seconds: float, cpus: Cpus) -> Probe:
    """Ask a server at a low rate from a process of its own. Raises BadReport."""
    arguments = [str(server.port), str(queries), str(RATE), str(seconds)]
    log = server.folder / "prober"
    command = [sys.executable, "-m", "tests.bench.dns.prober", *arguments]
    with launched(command, log=log, cpus=cpus.load, folder=ROOT) as process:
        try:
            process.wait(seconds + _SPARE_SECONDS)
        except subprocess.TimeoutExpired:
            raise BadReport("the prober did not end") from None
    try:
        return parse_probe(log.read_text())
    except (ValueError, TypeError):
        raise BadReport(f"the prober failed: {log.read_text()[-300:]!r}") from None
