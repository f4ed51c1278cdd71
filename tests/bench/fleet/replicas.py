"""Real dnsproxys among the secondaries: how soon they have the names, what they take, how soon a change is answered."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.dns.prober import is_answer
from tests.bench.fleet import report
from tests.bench.fleet.addresses import PORT, PRIMARY, replica_address
from tests.bench.fleet.samples import Figures
from tests.bench.fleet.usage import read_run_time, read_shares
from tests.bench.kit.faults import BadReport
from tests.bench.kit.figures import percentile
from tests.kit.launched import ROOT, launched
from tests.kit.messages import query

_PATIENCE: Final = 120.0
_LOOK_SECONDS: Final = 0.002
_LARGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Replica:
    """A running one."""

    address: str
    pid: int
    ready: float
    """Seconds from its start until it had the last name."""
    cpu: float
    """Seconds of processor time until then."""


@contextmanager
def running_replicas(
    count: int, *, policy: str, port: int, last: str, folder: Path, cpus: Collection[int]
) -> Iterator[list[Replica]]:
    """So many, one started after the other. Raises BadReport."""
    with ExitStack() as stack:
        found = []
        for number in range(count):
            address = replica_address(number)
            options = ["--source", f"rpz:{policy}@{PRIMARY}:{port}", "--listen", f"{address}:{PORT}"]
            options += ["--upstream", "127.0.0.1:9", "--admin", "off", "--lameduck", "0"]
            command = [sys.executable, "-m", "tests.bench.sync.in_pod", str(folder), "serve", *options]
            begun = time.monotonic()
            environment = {"PYTHONPATH": str(ROOT), "KUBECONFIG": ""}
            log = folder / f"replica{number}.log"
            process = stack.enter_context(launched(command, log=log, cpus=cpus, folder=folder, environment=environment))
            wait_answered(address, last)
            found.append(Replica(address, process.pid, time.monotonic() - begun, read_run_time(process.pid)))
        yield found


def measure_replicas(replicas: Sequence[Replica], change: Callable[[], str | None], *, changes: int) -> Figures:
    """Figures of all of them together; each change is waited for at each. Raises BadReport."""
    before = sum(read_run_time(one.pid) for one in replicas)
    times = []
    for _ in range(changes):
        begun = time.monotonic()
        name = change()
        if name is None:
            raise BadReport("this primary has no names to ask for")
        for one in replicas:
            wait_answered(one.address, name)
            times.append((time.monotonic() - begun) * 1000)
    used = sum(read_run_time(one.pid) for one in replicas) - before
    memory = [read_shares(one.pid) for one in replicas]
    figures = {
        report.READY: percentile([one.ready for one in replicas], 0.5),
        report.START_CPU: percentile([one.cpu for one in replicas], 0.5),
        report.REPLICA_RSS: percentile([resident for resident, _ in memory], 0.5),
        report.REPLICA_PSS: percentile([proportional for _, proportional in memory], 0.5),
        report.CHANGE_CPU: used / len(times) * 1000 if times else None,
        report.ANSWERED_P50: percentile(times, 0.5),
        report.ANSWERED_MAX: max(times, default=None),
    }
    return {(report.REPLICAS, what): value for what, value in figures.items() if value is not None}


def wait_answered(address: str, name: str) -> None:
    """Until a name is answered. Raises BadReport."""
    deadline = time.monotonic() + _PATIENCE
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.connect((address, PORT))
        opened.settimeout(0.2)
        while time.monotonic() < deadline:
            try:
                opened.send(query(name))
                if is_answer(opened.recv(_LARGEST)):
                    return
            except OSError:
                pass
            time.sleep(_LOOK_SECONDS)
    raise BadReport(f"{address} does not answer {name}")
