"""wrk: its command, and its report read. Pure, but for the one function that runs it.

The law: a script of ours writes the report, so that its figures are exact and its form is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.kit.cpus import Cpus
from tests.bench.kit.faults import BadReport
from tests.bench.kit.loads import run_load

SCRIPT: Final = """\
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'report {"requests": %d, "seconds": %.6f, "errors": %d, "p50_ms": %.4f, "p99_ms": %.4f}\\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""
_MARK: Final = "report "


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of wrk measured."""

    requests: int
    seconds: float
    errors: int
    p50_ms: float
    p99_ms: float


def make_command(
    program: str, *, port: int, connections: int, seconds: int, keep_alive: bool, script: Path
) -> list[str]:
    """Ask loopback, as fast as it can, from one thread."""
    load = ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    header = [] if keep_alive else ["-H", "Connection: close"]
    return [program, *load, *header, f"http://127.0.0.1:{port}/"]


def parse_report(text: str) -> Report:
    """Read what the script prints. Raises BadReport."""
    for line in text.splitlines():
        if line.startswith(_MARK):
            try:
                return Report(**json.loads(line.removeprefix(_MARK)))
            except (ValueError, TypeError) as error:
                raise BadReport(f"wrk's report is not ours: {line[:200]!r}") from error
    raise BadReport(f"wrk reported nothing; it ends: {text[-300:]!r}")


def run_wrk(
    program: str, *, port: int, connections: int, seconds: int, keep_alive: bool, folder: Path, cpus: Cpus
) -> Report:
    """One run. Raises BadReport, also where it does not end."""
    script = folder / "wrk.lua"
    script.write_text(SCRIPT)
    command = make_command(
        program, port=port, connections=connections, seconds=seconds, keep_alive=keep_alive, script=script
    )
    return parse_report(run_load(command, log=folder / "wrk.log", cpus=cpus.load, seconds=seconds, open_files=4096))
