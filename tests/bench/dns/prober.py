"""Asks at a low rate, on a steady clock, and reports how long each answer took; a process of its own.

The law: what is late here is not the server's: a reply's time is the kernel's, taken when it reached our socket, and
the next query goes out on time whether or not the last one was answered. A lost query counts as LOST_MS.

    python -m tests.bench.dns.prober PORT QUERIES RATE SECONDS
"""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.bench.figures import percentile

LOST_MS: Final = 1000.0
RATE: Final = 1000
"""Queries a second: enough for a p99, too few to disturb."""
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the socket module lacks it
_RECEIVE_BUFFER = 1 << 20


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


class Prober:
    """One connected socket and what it waits for, by query ID."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._sent_at: dict[bytes, int] = {}
        self.latencies: list[float] = []
        self.errors = 0

    def send(self, ident: int, query: bytes) -> None:
        key = ident.to_bytes(2, "big")
        self._sent_at[key] = time.time_ns()
        with contextlib.suppress(OSError):  # an ICMP error for an earlier one, or no room: this one is lost
            self._client.send(key + query[2:])

    def receive_until(self, deadline: float) -> None:
        """Take replies until a moment of time.monotonic."""
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._client], [], [], left)[0]:
                self._receive()

    def _receive(self) -> None:
        try:
            reply, ancillary, _, _ = self._client.recvmsg(4096, 64)
        except OSError:
            return
        sent_at = self._sent_at.pop(reply[:2], None)
        if sent_at is None:
            return
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
        self.latencies.append((seconds * 1_000_000_000 + nanoseconds - sent_at) / 1e6)
        self.errors += not is_answer(reply)

    @property
    def waiting(self) -> int:
        return len(self._sent_at)


def probe(port: int, queries: Sequence[bytes], *, rate: int, seconds: float) -> Probe:
    """Ask loopback for some seconds, then wait for what is still missing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        client.setblocking(False)
        client.connect(("127.0.0.1", port))
        prober = Prober(client)
        count = round(rate * seconds)
        begun = time.monotonic()
        for number, query in zip(range(count), itertools.cycle(queries), strict=False):
            prober.receive_until(begun + number / rate)
            prober.send(number & 0xFFFF, query)
        deadline = time.monotonic() + LOST_MS / 1000
        while prober.waiting and time.monotonic() < deadline:
            prober.receive_until(min(deadline, time.monotonic() + 0.01))
        return summarise(prober.latencies, sent=count, errors=prober.errors)


def main() -> None:
    """The process."""
    port, path, rate, seconds = sys.argv[1:]
    found = probe(int(port), list(read_queries(Path(path).read_bytes())), rate=int(rate), seconds=float(seconds))
    print(json.dumps(asdict(found)))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main()
