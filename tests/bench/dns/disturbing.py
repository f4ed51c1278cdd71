"""How soon names of the table are answered while somebody abuses the server, or its table changes.

The law: a fresh server of ours each time, the same steady questions, and proof that the disturbance took place.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.dns.abuse import SWAP
from tests.bench.dns.measuring import run_prober
from tests.bench.dns.peers import PEERS
from tests.bench.dns.prober import Probe
from tests.bench.dns.rig import Rig
from tests.bench.dns.workloads import WORKLOADS
from tests.bench.kit.clock import read_clock
from tests.bench.kit.faults import BadReport, CannotServe
from tests.bench.kit.loads import module_command, read_report, wait_ended
from tests.bench.kit.rig import Server
from tests.bench.sync.log import parse_log
from tests.kit.launched import ROOT, launched
from tests.kit.ports import free_port
from tests.kit.progress import Progress

_LEAD_SECONDS: Final = 1.0
"""For the abuse to be under way before the first question."""
_SPARE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What goes on while we ask."""

    name: str
    about: str
    abuse: str | None = None
    bombing_upstream: bool = False
    open_files: int | None = None


DISTURBANCES: Final = (
    Disturbance("calm", "nothing: how much of what follows is the machine's"),
    Disturbance("bombs", "chains of compression pointers over UDP, TCP and from the upstream", "bombs", True),
    Disturbance("torture", "random labels to an upstream that is dead", "torture"),
    Disturbance("descriptors", "64 open files, 200 connections and names to forward", "descriptors", open_files=64),
    Disturbance("slow", "200 connections that send an octet a second", "slow"),
    Disturbance("unread", "20 connections that send 10,000 queries and read nothing", "unread"),
    Disturbance("swap", "the hosts file of 10,000 names replaced again and again", SWAP),
)


@dataclass(frozen=True, slots=True)
class Disturbed:
    """One round of one disturbance."""

    probe: Probe
    busy: float
    """The share of the time that the server ran."""
    queued: float
    """The share of the time that it was ready to run, and others ran."""
    done: int | None
    """What the abuse says it did: messages, connections or files."""
    swaps: int
    """How often the server took over a new table."""


@dataclass(slots=True)
class Disturbances:
    """What came out, by name."""

    rounds: dict[str, list[Disturbed]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def disturb_rounds(
    rig: Rig, wanted: Sequence[Disturbance], *, rounds: int, seconds: float, progress: Progress
) -> Disturbances:
    """Every disturbance in turn, then all again."""
    found = Disturbances()
    for turn in range(rounds):
        for disturbance in wanted:
            name = disturbance.name
            progress.step(f"during {name}: round {turn + 1}")
            if name in found.faults:
                continue
            try:
                found.rounds.setdefault(name, []).append(_disturb(rig, disturbance, seconds=seconds))
            except (CannotServe, BadReport) as error:
                progress.note(f"during {name}: not measured: {error}")
                found.faults[name] = str(error)
    return found


def _disturb(rig: Rig, disturbance: Disturbance, *, seconds: float) -> Disturbed:
    table = WORKLOADS[0]
    lasting = _LEAD_SECONDS + seconds
    with ExitStack() as stack:
        upstream = _open_upstream(rig, disturbance, stack, lasting=lasting + _SPARE_SECONDS)
        server = rig.start(PEERS[0], table, stack=stack, upstream=upstream, open_files=disturbance.open_files)
        abuse = _launch_abuse(rig, disturbance.abuse, server, stack, seconds=lasting) if disturbance.abuse else None
        before, begun = read_clock(server.session), time.monotonic()
        time.sleep(_LEAD_SECONDS)
        probe = run_prober(server, rig.queries(table), seconds=seconds, cpus=rig.cpus)
        cpu, took = read_clock(server.session) - before, time.monotonic() - begun
        if server.process.poll() is not None:
            raise CannotServe(f"the server ended with status {server.process.returncode}")
        done = _wait_done(abuse, server.folder / "abuse.log") if abuse else None
        # One of them is the table at the start.
        swaps = _swaps(server.log) - 1
        return Disturbed(probe, cpu.total / took, cpu.queued / took, done, swaps)


def _swaps(log: Path) -> int:
    """Those that the log has by now: it sums them up each second."""
    events, _ = parse_log(log.read_bytes())
    return sum(int(event["swaps"]) for event in events if event.get("event") == "table changed")


def _open_upstream(rig: Rig, disturbance: Disturbance, stack: ExitStack, *, lasting: float) -> int:
    """The port of an upstream that answers with bombs, or, held here and never read, with nothing."""
    if disturbance.bombing_upstream:
        port = free_port()
        _launch(rig, stack, rig.folder / "answer-bombs.log", "answer-bombs", str(port), str(lasting))
        return port
    silent = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    silent.bind(("127.0.0.1", 0))
    return int(silent.getsockname()[1])


def _launch_abuse(rig: Rig, kind: str, server: Server, stack: ExitStack, *, seconds: float) -> subprocess.Popen[bytes]:
    hosts = [str(server.folder / "hosts")] if kind == SWAP else []
    return _launch(rig, stack, server.folder / "abuse.log", kind, str(server.port), str(seconds), *hosts)


def _launch(rig: Rig, stack: ExitStack, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = module_command("tests.bench.dns.abuse", *arguments)
    return stack.enter_context(launched(command, log=log, cpus=rig.cpus.load, folder=ROOT))


def _wait_done(abuse: subprocess.Popen[bytes], log: Path) -> int:
    wait_ended(abuse, _SPARE_SECONDS, log=log)
    return read_report(log, lambda text: int(json.loads(text)))
