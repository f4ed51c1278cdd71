"""What runs beside our server while it is measured, each in a process of its own: questions, and changes.

The law: on the processors of the load, and ended with the block.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.dns.checking import CannotServe, find_fault_at
from tests.bench.dns.dnsperf import BadReport
from tests.bench.dns.prober import RATE, Probe, parse_probe
from tests.bench.dns.workloads import Question
from tests.bench.launched import ROOT, launched
from tests.bench.sync.changing import Changes
from tests.bench.sync.ours import ADDRESS, STATIC, Ours
from tests.dnsproxy.messages import query

CHANGES: Final = 1000.0
"""A second."""
_SPARE_SECONDS: Final = 60.0
_LEAD_SECONDS: Final = 0.5
_CAUGHT_UP_SECONDS: Final = 60.0


def probe(ours: Ours, folder: Path, *, cpus: Collection[int], seconds: float) -> Probe:
    """Ask for names that are in the table all the time. Raises BadReport."""
    queries, log = folder / "queries", folder / "prober"
    messages = [query(name) for name in STATIC]
    queries.write_bytes(b"".join(len(one).to_bytes(2, "big") + one for one in messages))
    arguments = [str(ours.port), str(queries), str(RATE), str(seconds)]
    with launched(_command("tests.bench.dns.prober", *arguments), log=log, cpus=cpus, folder=ROOT) as process:
        _wait(process, seconds)
    try:
        found = parse_probe(log.read_text())
    except (ValueError, TypeError):
        raise BadReport(f"the prober failed: {log.read_text()[-300:]!r}") from None
    if found.errors:
        raise BadReport(f"{found.errors} replies were no answers")
    return found


@contextmanager
def changing(
    etcd_port: int, folder: Path, *, count: int, cpus: Collection[int], seconds: float
) -> Iterator[list[Changes]]:
    """Changes from before the block to its end, if that takes `seconds`; what was done is in the list after it."""
    found: list[Changes] = []
    log = folder / "changing"
    arguments = [str(etcd_port), str(count), str(CHANGES), str(_LEAD_SECONDS + seconds)]
    with launched(_command("tests.bench.sync.changing", *arguments), log=log, cpus=cpus, folder=ROOT) as process:
        time.sleep(_LEAD_SECONDS)
        yield found
        _wait(process, seconds)
    try:
        found.append(Changes(**json.loads(log.read_text())))
    except (ValueError, TypeError):
        raise BadReport(f"the changes failed: {log.read_text()[-300:]!r}") from None


def wait_answered(ours: Ours, name: str) -> float:
    """Until a name is answered; seconds from now. Raises CannotServe."""
    begun = time.monotonic()
    while (fault := find_fault_at(ours.port, Question(name, ADDRESS), edns=False)) is not None:
        if time.monotonic() - begun > _CAUGHT_UP_SECONDS:
            raise CannotServe(f"{name} is not answered: {fault}")
    return time.monotonic() - begun


def _command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds + _SPARE_SECONDS)
    except subprocess.TimeoutExpired:
        raise BadReport(f"{process.args!r} did not end") from None
