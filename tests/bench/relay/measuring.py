"""Rounds: every relay under every workload, one after the other, then all again.

The law: round robin, so that what else the machine does strikes all relays alike. Where it took the processor from a
relay, that round is measured again, whatever its figure was. A fault of one relay ends its measurement alone.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.bench.kit.clock import CpuTime, read_clock
from tests.bench.relay import asking, bulk, crowd
from tests.bench.relay.peers import Peer
from tests.bench.relay.rig import CannotServe, Rig, Server
from tests.bench.relay.samples import Sample
from tests.bench.relay.workloads import Kind, Workload
from tests.bench.relay.wrk import BadReport, run_wrk
from tests.kit.launched import ROOT, launched
from tests.kit.programs import find_program
from tests.kit.progress import Progress

_WARM_UP_SECONDS: Final = 1.0
_SPARE_SECONDS: Final = 60.0
_NOISY: Final = 0.1
"""The share of the time in the queue above which a round says more about the machine than about the relay."""
_TRIES: Final = 3
_GB: Final = 1e9
_ACCEPTABLE_ERRORS: Final = 0.001

Key = tuple[str, str]
"""The names of a workload and a relay."""


@dataclass(slots=True)
class Measured:
    """What came out, in the order of the workloads."""

    samples: dict[Key, list[Sample]]
    faults: dict[Key, str] = field(default_factory=dict)
    """Why a relay was not measured (any more)."""


Plan = Sequence[tuple[Workload, Sequence[Peer]]]
"""Which relays are measured under which workload."""


def count_steps(plan: Plan, *, rounds: int) -> int:
    """How often measure_rounds steps: a start with its warm-up and some rounds, each relay and workload."""
    return sum(len(peers) for _, peers in plan) * (1 + rounds)


def measure_rounds(
    rig: Rig,
    plan: Plan,
    *,
    rounds: int,
    seconds: float,
    progress: Progress,
) -> Measured:
    """Start and warm up all relays, then measure them in rounds, a workload at a time."""
    measured = Measured({})
    for workload, peers in plan:
        measured.samples.update({(workload.name, peer.label): [] for peer in peers})
        for turn in range(rounds + 1):
            for peer in peers:
                progress.step(f"{workload.name}: {peer.label}, {f'round {turn}' if turn else 'start and warm-up'}")
                _measure_into(measured, rig, workload, peer, turn=turn, seconds=seconds, progress=progress)
    return measured


def _measure_into(
    measured: Measured, rig: Rig, workload: Workload, peer: Peer, *, turn: int, seconds: float, progress: Progress
) -> None:
    key = workload.name, peer.label
    if key in measured.faults:
        return
    try:
        if turn:
            measured.samples[key].append(_measure_quietly(rig, workload, peer, seconds=seconds))
        elif workload.kind is not Kind.IDLE:
            measure(rig, workload, peer, seconds=min(_WARM_UP_SECONDS, seconds))
    except (CannotServe, BadReport) as error:
        progress.note(f"{workload.name}: {peer.label} is not measured: {error}")
        measured.faults[key] = str(error)


def _measure_quietly(rig: Rig, workload: Workload, peer: Peer, *, seconds: float) -> Sample:
    """The first of a few tries that the machine left alone, or the one that it disturbed least."""
    tries: list[Sample] = []
    for _ in range(_TRIES):
        tries.append(measure(rig, workload, peer, seconds=seconds))
        if _disturbed(tries[-1]) <= _NOISY or workload.kind is Kind.IDLE:
            break
    return min(tries, key=_disturbed)


def _disturbed(sample: Sample) -> float:
    """The share of a sample that says more about the machine than about the relay."""
    # Requests that were held up are left out already.
    return 0.0 if sample.held_up is not None else sample.queued or 0.0


def measure(rig: Rig, workload: Workload, peer: Peer, *, seconds: float) -> Sample:
    """One sample. Raises CannotServe, BadReport."""
    if workload.kind is Kind.IDLE:
        return _measure_idle(rig, workload, peer)
    server = rig.relay(peer, workload)
    before = read_clocks(server)
    sample = load(rig, workload, server, seconds)
    cpu = read_clocks(server) - before
    return sample if peer.setup is None else _with_cpu(sample, cpu)


def _with_cpu(sample: Sample, cpu: CpuTime) -> Sample:
    return replace(sample, cpu=cpu)


def read_clocks(server: Server) -> CpuTime:
    """The time of a relay's processes so far; those of ours each lead a session."""
    # A thread has the children that it started.
    children = " ".join(path.read_text() for path in Path(f"/proc/{server.session}/task").glob("*/children")).split()
    return sum((read_clock(session) for session in (server.session, *map(int, children))), CpuTime())


def load(rig: Rig, workload: Workload, server: Server, seconds: float) -> Sample:
    """Make load at a relay that runs. Raises CannotServe, BadReport."""
    if workload.kind is Kind.BULK:
        return _load_bulk(rig, workload, server, seconds)
    if workload.kind is Kind.LATENCY:
        return _load_asking(rig, workload, server, seconds)
    program = find_program("wrk")
    if program is None:
        raise CannotServe("wrk is not installed")
    report = run_wrk(
        program,
        port=server.port,
        connections=workload.size,
        seconds=max(1, round(seconds)),
        keep_alive=workload.keep_alive,
        folder=server.folder,
        cpus=rig.cpus,
    )
    if report.errors > _ACCEPTABLE_ERRORS * report.requests:
        raise CannotServe(f"{report.errors} errors in {report.requests} requests")
    return Sample(report.requests, report.seconds, None, report.p50_ms, report.p99_ms, errors=report.errors)


def _load_bulk(rig: Rig, workload: Workload, server: Server, seconds: float) -> Sample:
    what = "upload" if workload.upload else "download"
    arguments = ("ask", str(server.port), what, str(workload.size), str(seconds))
    text = _run(rig, bulk.__name__, arguments, server.folder / "bulk.log", seconds)
    try:
        transfers = bulk.parse_transfers(text)
    except (ValueError, TypeError):
        raise BadReport(f"the {what} failed: {text[-300:]!r}") from None
    return Sample(transfers.octets / _GB, transfers.seconds)


def _load_asking(rig: Rig, workload: Workload, server: Server, seconds: float) -> Sample:
    how = "keep" if workload.keep_alive else "new"
    processes = [str(one.process.pid) for one in (server, rig.nginx())]
    log = server.folder / "asking.log"
    text = _run(rig, asking.__name__, (str(server.port), str(seconds), how, *processes), log, seconds)
    try:
        answers = asking.parse_answers(text)
    except (ValueError, TypeError):
        raise BadReport(f"the requests failed: {text[-300:]!r}") from None
    held_up = answers.held_up / answers.requests
    return Sample(
        answers.requests, answers.seconds, None, answers.p50_ms, answers.p99_ms, answers.longest_ms, held_up=held_up
    )


def _run(rig: Rig, module: str, arguments: Sequence[str], log: Path, seconds: float) -> str:
    command = [sys.executable, "-m", module, *arguments]
    with launched(command, log=log, cpus=rig.cpus.load, folder=ROOT) as process:
        try:
            process.wait(seconds + _SPARE_SECONDS)
        except subprocess.TimeoutExpired:
            raise BadReport(f"{module} did not end") from None
    return log.read_text()


def _measure_idle(rig: Rig, workload: Workload, peer: Peer) -> Sample:
    """In a relay of its own, that has not had other connections before."""
    with ExitStack() as stack:
        server = rig.start(peer, workload, stack=stack)
        before = resident_kib(server.process.pid)
        log = server.folder / "crowd.log"
        command = [sys.executable, "-m", crowd.__name__, str(server.port), str(workload.size)]
        begun = time.monotonic()
        process = stack.enter_context(launched(command, log=log, cpus=rig.cpus.load, folder=ROOT))
        while crowd.READY not in log.read_text():
            if process.poll() is not None or time.monotonic() - begun > _SPARE_SECONDS:
                raise CannotServe(f"the clients are not all there; their log ends: {log.read_text()[-300:]!r}")
            time.sleep(0.05)
        memory = (resident_kib(server.process.pid) - before) / workload.size
        return Sample(workload.size, time.monotonic() - begun, memory_kib=memory)


def resident_kib(process: int) -> int:
    """Resident memory, as the kernel counts it (proc(5)); every relay here is one process."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise CannotServe("it has no memory any more")
