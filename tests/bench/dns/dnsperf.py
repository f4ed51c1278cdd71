"""dnsperf: its command, and its report read. Pure, but for the one function that runs it.

The law: a line that is not there is an error here, so that a new version of dnsperf cannot turn into a wrong figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import BadReport
from tests.bench.kit.loads import run_load

CLIENTS: Final = 8
"""Sockets that ask."""
OUTSTANDING: Final = 200
"""Queries under way at most: enough that the server never waits, and too few to overflow its socket's buffer."""
_LOST_AFTER: Final = 2


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of dnsperf measured."""

    sent: int
    completed: int
    lost: int
    seconds: float
    qps: float
    average_ms: float
    rcodes: Mapping[str, int]

    @property
    def errors(self) -> int:
        """Replies that were no answers."""
        return self.completed - self.rcodes.get("NOERROR", 0)


_COUNT = {
    "sent": r"Queries sent:\s+(\d+)",
    "completed": r"Queries completed:\s+(\d+)",
    "lost": r"Queries lost:\s+(\d+)",
    "seconds": r"Run time \(s\):\s+([\d.]+)",
    "qps": r"Queries per second:\s+([\d.]+)",
}


def make_command(program: str, *, port: int, queries: Path, seconds: float, threads: int) -> list[str]:
    """Ask loopback, as fast as it can."""
    target = ["-s", "127.0.0.1", "-p", str(port), "-B", "-d", str(queries), "-l", f"{seconds:g}"]
    load = ["-c", str(max(CLIENTS, threads)), "-T", str(threads), "-q", str(OUTSTANDING), "-t", str(_LOST_AFTER)]
    return [program, *target, *load]


def parse_report(text: str) -> Report:
    """Read what dnsperf prints. Raises BadReport."""
    figures = {name: _find(pattern, text) for name, pattern in _COUNT.items()}
    # Where nothing came back it leaves these two out.
    average = re.search(r"Average Latency \(s\):\s+([\d.]+)", text)
    rcodes = re.search(r"Response codes:\s+(.*)", text)
    return Report(
        sent=int(figures["sent"]),
        completed=int(figures["completed"]),
        lost=int(figures["lost"]),
        seconds=float(figures["seconds"]),
        qps=float(figures["qps"]),
        average_ms=round(float(average[1]) * 1000, 6) if average else 0.0,
        rcodes={name: int(count) for name, count in re.findall(r"([A-Z]+) (\d+) \(", rcodes[1] if rcodes else "")},
    )


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise BadReport(f"dnsperf's report has no {pattern!r}; it ends: {text[-300:]!r}")
    return found[1]


def run_dnsperf(program: str, *, port: int, queries: Path, seconds: float, cpus: Cpus) -> Report:
    """One run. Raises BadReport, also where it does not end."""
    command = make_command(program, port=port, queries=queries, seconds=seconds, threads=min(4, len(cpus.load)))
    return parse_report(run_load(command, log=queries.with_suffix(".dnsperf"), cpus=cpus.load, seconds=seconds))
