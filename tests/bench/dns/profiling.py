"""Where our server spends its time under load: perf(1) for functions, strace(1) for system calls.

The law: a profile is taken apart from the measurement, because both programs slow down what they look at.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench.dns.dnsperf import run_dnsperf
from tests.bench.dns.peers import PEERS
from tests.bench.dns.rig import Rig, Server
from tests.bench.dns.workloads import Workload
from tests.kit.launched import end_session, launched
from tests.kit.programs import find_program

_PERF_RATE: Final = "1999"
_LEAST_SHARE: Final = "0.8"
"""Percent; functions below are left out."""
_ATTACH_SECONDS: Final = 0.5


def profile(rig: Rig, workload: Workload, *, dnsperf: str, seconds: float) -> str:
    """What both programs say about one workload, each if it is installed. Raises CannotServe, BadReport."""
    with ExitStack() as stack:
        server = rig.start(PEERS[0], workload, stack=stack)
        parts = [f"profile of ours, {workload.name}\n"]
        for name, run in (("perf", _perf), ("strace", _strace)):
            program = find_program(name)
            text = run(rig, program, workload, server, dnsperf, seconds) if program else f"{name} is not installed\n"
            parts.append(text)
        return "\n".join(parts)


def _perf(rig: Rig, program: str, workload: Workload, server: Server, dnsperf: str, seconds: float) -> str:
    data = server.folder / "perf.data"
    record = [program, "record", "-q", "-F", _PERF_RATE, "-o", str(data), "-p", str(server.process.pid)]
    completed = _load_under(record, rig, workload, server, dnsperf, seconds)
    shape = ["--stdio", "--no-children", "--percent-limit", _LEAST_SHARE, "--sort", "dso,symbol"]
    shown = subprocess.run([program, "report", "-i", str(data), *shape], capture_output=True, text=True, check=False)
    rows = [line for line in shown.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return f"perf: {completed} queries\n" + "".join(f"{row.rstrip(' -')}\n" for row in rows or [shown.stderr.strip()])


def _strace(rig: Rig, program: str, workload: Workload, server: Server, dnsperf: str, seconds: float) -> str:
    summary = server.folder / "strace.out"
    trace = [program, "-c", "-f", "-S", "calls", "-U", "calls,errors,name", "-o", str(summary)]
    completed = _load_under([*trace, "-p", str(server.process.pid)], rig, workload, server, dnsperf, seconds)
    return f"strace: calls for {completed} queries, fewer a batch than without strace\n{summary.read_text()}"


def _load_under(
    tracer: Sequence[str], rig: Rig, workload: Workload, server: Server, dnsperf: str, seconds: float
) -> int:
    """Run dnsperf while a tracer is attached; how many queries were answered."""
    log = Path(server.folder / "tracer.log")
    with launched(tracer, log=log, cpus=rig.cpus.load) as process:
        time.sleep(_ATTACH_SECONDS)
        queries = rig.queries(workload)
        report = run_dnsperf(dnsperf, port=server.port, queries=queries, seconds=seconds, cpus=rig.cpus)
        # Both write what they found when they are asked to end.
        end_session(process)
    return report.completed
