"""The profile of our relay under load."""

from __future__ import annotations

from contextlib import ExitStack

from tests.bench.kit.profiling import Profiled, profile_process
from tests.bench.relay.measuring import load
from tests.bench.relay.peers import PEERS
from tests.bench.relay.rig import Rig
from tests.bench.relay.workloads import Kind, Workload


def profile(rig: Rig, workload: Workload, *, seconds: float) -> str:
    """What perf and strace say about one workload that has a load. Raises CannotServe, BadReport."""
    with ExitStack() as stack:
        server = rig.start(PEERS[0], workload, stack=stack)

        def load_once() -> str:
            sample = load(rig, workload, server, seconds)
            return f"{sample.amount:g} {'GB' if workload.kind is Kind.BULK else 'requests'}"

        return profile_process(Profiled(server.process.pid, server.folder, rig.cpus.load, load_once))
