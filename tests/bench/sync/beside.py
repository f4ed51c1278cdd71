"""What runs beside our server while it is measured, each in a process of its own: questions, and changes.

The law: on the processors of the load, and ended with the block.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.dns.checking import find_fault_at
from tests.bench.dns.prober import RATE, Probe, parse_probe
from tests.bench.dns.workloads import Question
from tests.bench.kit.faults import BadReport, CannotServe
from tests.bench.kit.loads import read_report, running_module, wait_ended
from tests.bench.sync.changing import BEGUN, Changes
from tests.bench.sync.ours import ADDRESS, STATIC, Ours
from tests.kit.messages import query

CHANGES: Final = 1000.0
"""A second."""
_SPARE_SECONDS: Final = 90.0
_SPARE_CHANGES_SECONDS: Final = 0.5
"""What starts in the block takes its time to start."""
_LOOK_SECONDS: Final = 0.005
_NEXT_SECONDS: Final = 0.001
_CAUGHT_UP_SECONDS: Final = 60.0


@contextmanager
def probing(ours: Ours, folder: Path, *, cpus: Collection[int], seconds: float) -> Iterator[list[Probe]]:
    """Ask for names that are in the table all the time, from the first answer on.

    What was found is in the list after the block. Raises BadReport.
    """
    queries = folder / "queries"
    messages = [query(name) for name in STATIC]
    queries.write_bytes(b"".join(len(one).to_bytes(2, "big") + one for one in messages))
    found: list[Probe] = []
    arguments = (ours.port, queries, RATE, seconds)
    log = folder / "probing"
    with running_module("tests.bench.sync.probing", *arguments, log=log, cpus=cpus) as process:
        yield found
        wait_ended(process, seconds + _SPARE_SECONDS, log=log)
    found.append(read_report(log, parse_probe))
    if found[0].errors:
        raise BadReport(f"{found[0].errors} replies were no answers")


@contextmanager
def changing(
    etcd_port: int, folder: Path, *, count: int, cpus: Collection[int], seconds: float
) -> Iterator[list[Changes]]:
    """Changes from before the block to its end, if that takes `seconds`; what was done is in the list after it.

    Raises BadReport.
    """
    found: list[Changes] = []
    log = folder / "changing"
    arguments = (etcd_port, count, CHANGES, _SPARE_CHANGES_SECONDS + seconds)
    with running_module("tests.bench.sync.changing", *arguments, log=log, cpus=cpus) as process:
        while BEGUN not in log.read_text() and process.poll() is None:
            time.sleep(_LOOK_SECONDS)
        yield found
        wait_ended(process, seconds + _SPARE_SECONDS, log=log)
    found.append(read_report(log, _parse_changes))


def wait_answered(ours: Ours, name: str) -> float:
    """Until a name is answered; seconds from now. Raises CannotServe."""
    begun = time.monotonic()
    while (fault := find_fault_at(ours.port, Question(name, ADDRESS), edns=False)) is not None:
        if time.monotonic() - begun > _CAUGHT_UP_SECONDS:
            raise CannotServe(f"{name} is not answered: {fault}")
        time.sleep(_NEXT_SECONDS)
    return time.monotonic() - begun


def _parse_changes(text: str) -> Changes:
    return Changes(**json.loads(text.removeprefix(BEGUN)))
