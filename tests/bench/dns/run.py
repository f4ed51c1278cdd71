"""One run of the benchmark: rounds, disturbances and profiles, one after the other, on the same processors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tests.bench.dns.disturbing import Disturbance, disturb_rounds
from tests.bench.dns.measuring import measure_all, pairs_of
from tests.bench.dns.peers import OURS, Peer
from tests.bench.dns.profiling import profile
from tests.bench.dns.report import Row, make_rows
from tests.bench.dns.rig import Rig
from tests.bench.dns.workloads import Workload
from tests.bench.kit.cpus import split_cpus
from tests.bench.kit.profiling import make_profiles
from tests.bench.kit.rounds import count_steps
from tests.kit.progress import Progress


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and for how long."""

    workloads: Sequence[Workload]
    disturbances: Sequence[Disturbance]
    rounds: int
    seconds: float
    pin: bool = True
    profile: bool = False
    servers: Sequence[str] = ()
    """The labels of those to measure; empty for all."""
    more: Sequence[Peer] = ()
    """Ours with other Pythons."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a run found."""

    rows: Sequence[Row]
    profiles: Sequence[str]

    @property
    def has_ours(self) -> bool:
        """Whether anything of our server was measured."""
        return any(row.server == OURS and (row.summary or row.p99_ms) for row in self.rows)


def run_bench(options: Options, *, dnsperf: str) -> Found:
    """Everything that was asked for."""
    cpus = split_cpus(os.sched_getaffinity(0), pin=options.pin)
    rounds, seconds = options.rounds, options.seconds
    profiled = options.workloads if options.profile else ()
    pairs = pairs_of(options.workloads, servers=options.servers, more=options.more)
    progress = Progress(count_steps(pairs, rounds=rounds) + len(options.disturbances) * rounds + len(profiled))
    try:
        with Rig(cpus=cpus) as rig:
            measured = measure_all(rig, pairs, dnsperf=dnsperf, rounds=rounds, seconds=seconds, progress=progress)
        # The others' servers have ended, and cannot disturb.
        with Rig(cpus=cpus) as rig:
            disturbed = disturb_rounds(rig, options.disturbances, rounds=rounds, seconds=seconds, progress=progress)
            take = partial(profile, rig, dnsperf=dnsperf, seconds=seconds)
            profiles = make_profiles(profiled, take, progress=progress)
    finally:
        progress.finish()
    return Found(make_rows(measured, disturbed), profiles)
