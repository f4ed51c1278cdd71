"""The profile of our server under dnsperf."""

from __future__ import annotations

from contextlib import ExitStack

from tests.bench.dns.dnsperf import run_dnsperf
from tests.bench.dns.peers import PEERS
from tests.bench.dns.rig import Rig
from tests.bench.dns.workloads import Workload
from tests.bench.kit.profiling import Profiled, profile_process


def profile(rig: Rig, workload: Workload, *, dnsperf: str, seconds: float) -> str:
    """What perf and strace say about one workload. Raises CannotServe, BadReport."""
    with ExitStack() as stack:
        server = rig.start(PEERS[0], workload, stack=stack)

        def load() -> str:
            queries = rig.queries(workload)
            report = run_dnsperf(dnsperf, port=server.port, queries=queries, seconds=seconds, cpus=rig.cpus)
            return f"{report.completed} queries"

        return profile_process(Profiled(server.process.pid, server.folder, rig.cpus.load, load))
