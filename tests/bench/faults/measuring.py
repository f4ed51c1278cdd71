"""One fault: what becomes of steady questions before, during and after it.

The law: the questions come from a process that knows nothing of the fault, and the fault's times are those of the same
clock; so a figure is about the questions that were asked between two moments, however late their replies came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.faults.asking import PATIENCE, Asked, parse_asked
from tests.bench.faults.scene import Scene, running_scene
from tests.bench.kit.loads import SPARE_SECONDS, read_report, running_module, wait_ended
from tests.kit.datagram_drops import dropped_datagrams

_LEAD_SECONDS: Final = 3.0
_AFTER_SECONDS: Final = 6.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to dnsproxy, and how."""

    name: str
    about: str
    block: Callable[[Scene], AbstractContextManager[None]]
    dual_stack: bool = False
    """Whether dnsproxy's Service has an address of each family."""


FAULTS: Final = (
    Fault("calm", "nothing: how much of what follows is the machine's", lambda _: nullcontext()),
    Fault("killed", "SIGKILL, and another process later", Scene.killed),
    Fault("hung", "SIGSTOP, and SIGCONT later", Scene.hung),
    Fault("hung, dual", "the same, and its Service is dual-stack", Scene.hung, dual_stack=True),
    Fault("black hole", "its packets are dropped, until later", Scene.black_holed),
)


@dataclass(frozen=True, slots=True)
class Round:
    """One fault, and every question that was asked around it."""

    asked: Sequence[Asked]
    begun: float
    """When the fault was there, in seconds of time.monotonic."""
    ended: float
    """When dnsproxy was there again."""
    resident_mb: float
    """The most memory that CoreDNS had."""
    dropped: int
    """Datagrams that the kernel threw away in CoreDNS's network, because a socket's buffer was full."""


def measure(
    folder: Path, fault: Fault, *, peer: str, options: Sequence[str], rate: float, lasting: float, cpus: Sequence[int]
) -> Round:
    """Play one fault. Raises CannotServe, BadReport."""
    seconds = _LEAD_SECONDS + lasting + _AFTER_SECONDS
    with running_scene(folder, peer=peer, options=options, dual_stack=fault.dual_stack) as scene:
        log = folder / "asked"
        arguments = ("127.0.0.1", scene.coredns.port, rate, seconds)
        with running_module("tests.bench.faults.asking", *arguments, log=log, cpus=cpus) as asking:
            dropped = dropped_datagrams()
            time.sleep(_LEAD_SECONDS)
            begun = time.monotonic()
            with fault.block(scene):
                time.sleep(max(0.0, begun + lasting - time.monotonic()))
            ended = time.monotonic()
            wait_ended(asking, seconds + PATIENCE + SPARE_SECONDS, log=log)
        resident, dropped = _read_peak(scene.coredns.process.pid), dropped_datagrams() - dropped
    return Round(read_report(log, parse_asked), begun, ended, resident, dropped)


def _read_peak(pid: int) -> float:
    """VmHWM (proc(5)) in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
