"""One run: every fault behind every CoreDNS, one after the other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.faults.measuring import Fault, Round, measure
from tests.bench.faults.outcome import judge
from tests.bench.faults.report import Row
from tests.bench.faults.scene import RELAY
from tests.bench.kit.cpus import split_cpus
from tests.bench.kit.faults import BadReport, CannotServe
from tests.kit.coredns import coredns_version
from tests.kit.processes import StartFailed
from tests.kit.progress import Progress

_TRIES: Final = 3
"""Datagrams that the kernel drops say more about the machine than about a fault."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and for how long."""

    peers: Sequence[str]
    faults: Sequence[Fault]
    rounds: int
    rate: float
    seconds: float
    forward: Sequence[str]
    """The options of the forward that was there before ours."""


def run_bench(options: Options) -> list[Row]:
    """Everything that was asked for."""
    progress = Progress(len(options.peers) * len(options.faults) * options.rounds)
    rows = []
    try:
        for turn in range(options.rounds):
            for peer in options.peers:
                version = ".".join(map(str, coredns_version(peer)))
                for fault in options.faults:
                    progress.step(f"CoreDNS {version}, {fault.name}: round {turn + 1}")
                    rows.append(_measure(options, peer, version, fault))
    finally:
        progress.finish()
    return sorted(rows, key=lambda row: (row.coredns, [one.name for one in options.faults].index(row.fault)))


def _measure(options: Options, peer: str, version: str, fault: Fault) -> Row:
    """The first of a few tries in which the kernel dropped nothing, or the one in which it dropped the least."""
    tries: list[Round] = []
    for _ in range(_TRIES):
        try:
            tries.append(_play(options, peer, fault))
        except (BadReport, CannotServe, StartFailed) as error:
            return Row(version, fault.name, None, trouble=str(error))
        if not tries[-1].dropped:
            break
    best = min(tries, key=lambda one: one.dropped)
    outcome = judge(best.asked, begun=best.begun, ended=best.ended, ours=RELAY)
    return Row(version, fault.name, outcome, best.resident_mb, best.dropped, len(tries))


def _play(options: Options, peer: str, fault: Fault) -> Round:
    # The questions on other processors than the first, where there are others; CoreDNS takes what it gets.
    cpus = sorted(split_cpus(os.sched_getaffinity(0)).load)
    with tempfile.TemporaryDirectory(prefix="bench-faults-") as folder:
        return measure(
            Path(folder),
            fault,
            peer=peer,
            options=options.forward,
            rate=options.rate,
            lasting=options.seconds,
            cpus=cpus,
        )
