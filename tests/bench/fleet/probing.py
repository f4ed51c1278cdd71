"""The prober of tests.bench.dns, which here asks until SIGTERM; a process of its own.

    python -m tests.bench.fleet.probing PORT QUERIES RATE

The law: the questions go out on a steady clock whatever the primary is doing besides.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Final

from tests.bench.dns.prober import LOST_MS, Probe, is_answer, parse_probe, read_queries, summarise
from tests.bench.fleet.addresses import PRIMARY
from tests.bench.fleet.priority import put_first
from tests.bench.kit.faults import BadReport
from tests.bench.kit.loads import read_report, running_module, wait_ended
from tests.bench.steady_questions import Heard, ask_steadily

RATE: Final = 500
"""Queries a second: enough for a p99, too few to disturb."""
_BEGUN: Final = "begun\n"
_LOOK_SECONDS: Final = 0.02


@contextmanager
def probing(
    port: int, queries: Path, *, folder: Path, cpus: Collection[int], first: bool = False
) -> Iterator[list[Probe]]:
    """Ask for the time of a block; what was found is in the list after it. Raises BadReport.

    `first`: before other processes of its processor.
    """
    found: list[Probe] = []
    log = folder / "probing.log"
    with running_module("tests.bench.fleet.probing", port, queries, RATE, log=log, cpus=cpus) as process:
        if first:
            put_first(process.pid)
        while _BEGUN not in log.read_text():
            if process.poll() is not None:
                raise BadReport(f"the prober ended: {log.read_text()[-300:]}")
            time.sleep(_LOOK_SECONDS)
        yield found
        process.terminate()
        wait_ended(process, 3 * LOST_MS / 1000, log=log)
    found.append(read_report(log, lambda text: parse_probe(text.removeprefix(_BEGUN))))


def probe_of(heard: Sequence[Heard]) -> Probe:
    """What became of all questions."""
    replies = [one for one in heard if one.reply is not None]
    errors = sum(not is_answer(one.reply or b"") for one in replies)
    return summarise([one.seconds * 1000 for one in replies], sent=len(heard), errors=errors)


def main(port: int, queries: Sequence[bytes], rate: int) -> None:
    """The process."""
    ended = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    print(_BEGUN, end="", flush=True)  # noqa: T201  # what it is for
    questions = itertools.takewhile(lambda _: not ended, itertools.cycle(queries))
    heard = ask_steadily((PRIMARY, port), questions, rate=rate, patience=LOST_MS / 1000)
    print(json.dumps(asdict(probe_of(heard))))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), list(read_queries(Path(sys.argv[2]).read_bytes())), int(sys.argv[3]))
