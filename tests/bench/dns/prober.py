"""Asks at a low rate, on a steady clock, and reports how long each answer took; a process of its own.

The law: what is late here is not the server's. A lost query counts as LOST_MS.

    python -m tests.bench.dns.prober PORT QUERIES RATE SECONDS
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.bench.kit.figures import percentile
from tests.bench.steady_questions import ask_steadily

LOST_MS: Final = 1000.0
RATE: Final = 1000
"""Queries a second: enough for a p99, too few to disturb."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Milliseconds over all queries sent, lost ones included."""

    sent: int
    lost: int
    errors: int
    """Replies that were no answers."""
    p50: float | None
    p99: float | None
    worst: float | None


def summarise(latencies: Sequence[float], *, sent: int, errors: int) -> Probe:
    """A probe from the milliseconds of the queries that were answered."""
    lost = sent - len(latencies)
    every = [*latencies, *[LOST_MS] * lost]
    return Probe(sent, lost, errors, percentile(every, 0.5), percentile(every, 0.99), max(every, default=None))


def parse_probe(text: str) -> Probe:
    """What the process printed. Raises ValueError."""
    return Probe(**json.loads(text))


def read_queries(octets: bytes) -> Iterator[bytes]:
    """The messages of a file for `dnsperf -B`."""
    position = 0
    while position < len(octets):
        size = int.from_bytes(octets[position : position + 2], "big")
        yield octets[position + 2 : position + 2 + size]
        position += 2 + size


def is_answer(reply: bytes) -> bool:
    """NOERROR with an answer, nothing cut off."""
    return len(reply) > 12 and not reply[2] & 0x02 and not reply[3] & 0x0F and reply[6:8] != b"\0\0"


def probe(port: int, queries: Sequence[bytes], *, rate: int, seconds: float) -> Probe:
    """Ask loopback for some seconds, then wait for what is still missing."""
    count = round(rate * seconds)
    questions = itertools.islice(itertools.cycle(queries), count)
    heard = ask_steadily(("127.0.0.1", port), questions, rate=rate, patience=LOST_MS / 1000)
    replies = [(one.seconds * 1000, one.reply) for one in heard if one.reply is not None]
    errors = sum(not is_answer(reply) for _, reply in replies)
    return summarise([milliseconds for milliseconds, _ in replies], sent=count, errors=errors)


def main() -> None:
    """The process."""
    port, path, rate, seconds = sys.argv[1:]
    found = probe(int(port), list(read_queries(Path(path).read_bytes())), rate=int(rate), seconds=float(seconds))
    print(json.dumps(asdict(found)))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main()
