"""Where our relay spends its time under load: perf(1) for functions, strace(1) for system calls.

The law: a profile is taken apart from the measurement, because both programs slow down what they look at.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from tests.bench.relay.measuring import load
from tests.bench.relay.peers import PEERS
from tests.bench.relay.rig import CannotServe, Rig, Server
from tests.bench.relay.workloads import Kind, Workload
from tests.bench.relay.wrk import BadReport
from tests.kit.launched import end_session, launched
from tests.kit.programs import find_program
from tests.kit.progress import Progress

_PERF_RATE: Final = "1999"
_LEAST_SHARE: Final = "0.8"
"""Percent; functions below are left out."""
_ATTACH_SECONDS: Final = 0.5


def make_profiles(rig: Rig, workloads: Sequence[Workload], *, seconds: float, progress: Progress) -> list[str]:
    """A text for each workload that has a load."""
    profiles = []
    for workload in workloads:
        progress.step(f"profile of {workload.name}")
        if workload.kind is Kind.IDLE:
            continue
        try:
            profiles.append(profile(rig, workload, seconds=seconds))
        except (CannotServe, BadReport) as error:
            progress.note(f"{workload.name} has no profile: {error}")
    return profiles


def profile(rig: Rig, workload: Workload, *, seconds: float) -> str:
    """What both programs say about one workload, each if it is installed. Raises CannotServe, BadReport."""
    with ExitStack() as stack:
        server = rig.start(PEERS[0], workload, stack=stack)
        parts = [f"profile of ours, {workload.name}\n"]
        for name, run in (("perf", _perf), ("strace", _strace)):
            program = find_program(name)
            parts.append(run(rig, program, workload, server, seconds) if program else f"{name} is not installed\n")
        return "\n".join(parts)


def _perf(rig: Rig, program: str, workload: Workload, server: Server, seconds: float) -> str:
    data = server.folder / "perf.data"
    record = [program, "record", "-q", "-F", _PERF_RATE, "-o", str(data), "-p", str(server.process.pid)]
    amount = _load_under(record, rig, workload, server, seconds)
    shape = ["--stdio", "--no-children", "--percent-limit", _LEAST_SHARE, "--sort", "dso,symbol"]
    shown = subprocess.run([program, "report", "-i", str(data), *shape], capture_output=True, text=True, check=False)
    rows = [line for line in shown.stdout.splitlines() if line.strip() and not line.startswith("#")]
    return f"perf: {amount}\n" + "".join(f"{row.rstrip(' -')}\n" for row in rows or [shown.stderr.strip()])


def _strace(rig: Rig, program: str, workload: Workload, server: Server, seconds: float) -> str:
    summary = server.folder / "strace.out"
    trace = [program, "-c", "-f", "-S", "calls", "-U", "calls,errors,name", "-o", str(summary)]
    amount = _load_under([*trace, "-p", str(server.process.pid)], rig, workload, server, seconds)
    return f"strace: calls for {amount}, fewer a batch than without strace\n{summary.read_text()}"


def _load_under(tracer: Sequence[str], rig: Rig, workload: Workload, server: Server, seconds: float) -> str:
    """Make load while a tracer is attached; what was done."""
    with launched(tracer, log=server.folder / "tracer.log", cpus=rig.cpus.load) as process:
        time.sleep(_ATTACH_SECONDS)
        sample = load(rig, workload, server, seconds)
        # Both write what they found when they are asked to end.
        end_session(process)
    return f"{sample.amount:g} {'GB' if workload.kind is Kind.BULK else 'requests'}"
