"""One sample of one relay under one workload, by the kind of the workload.

The law: all relays of a workload are measured in turn, so that other work of the machine strikes all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.bench.kit.clock import CpuTime, read_clock
from tests.bench.kit.faults import CannotServe
from tests.bench.kit.loads import Report, module_command, read_report, run_load, running_module
from tests.bench.kit.rig import Server
from tests.bench.kit.rounds import Measured, measure_quietly, measure_rounds
from tests.bench.relay import asking, bulk, crowd
from tests.bench.relay.peers import Peer
from tests.bench.relay.rig import Rig
from tests.bench.relay.samples import Sample
from tests.bench.relay.workloads import Kind, Workload
from tests.bench.relay.wrk import run_wrk
from tests.kit.programs import find_program
from tests.kit.progress import Progress

_WARM_UP_SECONDS: Final = 1.0
_SPARE_SECONDS: Final = 60.0
_GB: Final = 1e9
_ACCEPTABLE_ERRORS: Final = 0.001

Plan = Sequence[tuple[Workload, Sequence[Peer]]]
"""The relays that are measured under each workload."""


def pairs_of(plan: Plan) -> list[tuple[Workload, Peer]]:
    """All measurements of a plan."""
    return [(workload, peer) for workload, peers in plan for peer in peers]


def measure_all(rig: Rig, plan: Plan, *, rounds: int, seconds: float, progress: Progress) -> Measured[Sample]:
    """Start and warm up all relays, then measure them in rounds, a workload at a time."""

    def warm_up(workload: Workload, peer: Peer) -> None:
        if workload.kind is not Kind.IDLE:
            measure(rig, workload, peer, seconds=min(_WARM_UP_SECONDS, seconds))

    def take(workload: Workload, peer: Peer) -> Sample:
        return measure_quietly(lambda: measure(rig, workload, peer, seconds=seconds), _disturbed)

    measured: Measured[Sample] = Measured()
    for one in plan:
        measure_rounds(measured, pairs_of([one]), warm_up=warm_up, measure=take, rounds=rounds, progress=progress)
    return measured


def _disturbed(sample: Sample) -> float:
    """The share of a sample that says more about the machine than about the relay."""
    # Requests that were held up are excluded already; idle connections have no time in the queue.
    return 0.0 if sample.held_up is not None else sample.queued or 0.0


def measure(rig: Rig, workload: Workload, peer: Peer, *, seconds: float) -> Sample:
    """One sample. Raises CannotServe, BadReport."""
    if workload.kind is Kind.IDLE:
        return _measure_idle(rig, workload, peer)
    server = rig.relay(peer, workload)
    before = read_clocks(server)
    sample = load(rig, workload, server, seconds)
    cpu = read_clocks(server) - before
    return sample if peer.setup is None else replace(sample, cpu=cpu)


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
    command = module_command(bulk.__name__, "ask", server.port, what, workload.size, seconds)
    transfers = _run(rig, command, server.folder / "bulk.log", seconds, bulk.parse_transfers)
    return Sample(transfers.octets / _GB, transfers.seconds)


def _load_asking(rig: Rig, workload: Workload, server: Server, seconds: float) -> Sample:
    how = "keep" if workload.keep_alive else "new"
    processes = [one.process.pid for one in (server, rig.nginx())]
    command = module_command(asking.__name__, server.port, seconds, how, *processes)
    answers = _run(rig, command, server.folder / "asking.log", seconds, asking.parse_answers)
    held_up = answers.held_up / answers.requests
    return Sample(
        answers.requests, answers.seconds, None, answers.p50_ms, answers.p99_ms, answers.longest_ms, held_up=held_up
    )


def _run(rig: Rig, command: Sequence[str], log: Path, seconds: float, parse: Callable[[str], Report]) -> Report:
    run_load(command, log=log, cpus=rig.cpus.load, seconds=seconds, spare=_SPARE_SECONDS)
    return read_report(log, parse)


def _measure_idle(rig: Rig, workload: Workload, peer: Peer) -> Sample:
    """In a relay of its own, that has not had other connections before."""
    with ExitStack() as stack:
        server = rig.start(peer, workload, stack=stack)
        before = resident_kib(server.process.pid)
        log = server.folder / "crowd.log"
        begun = time.monotonic()
        clients = running_module(crowd.__name__, server.port, workload.size, log=log, cpus=rig.cpus.load)
        process = stack.enter_context(clients)
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
