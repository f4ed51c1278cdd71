"""Asks for new names on a steady clock and keeps what became of every question; a process of its own.

The law: the next question goes out on time whatever became of those before it, each is asked once, and a reply's time
is the kernel's, taken when it reached our socket.

    python -m tests.bench.faults.asking ADDRESS PORT RATE SECONDS
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from tests.dnsproxy.messages import query

TABLE_SUFFIX: Final = "apps.example.org"
"""Every second question is for a name below this one, the others are for names outside the table."""
OUTSIDE_SUFFIX: Final = "www.example.org"

PATIENCE: Final = 8.0
"""Seconds until a question counts as lost: CoreDNS itself gives up after five."""
NOTHING: Final = "nothing"
_SO_TIMESTAMPNS: Final = 35  # asm-generic/socket.h; the socket module lacks it
_RECEIVE_BUFFER: Final = 4 << 20
_ADDRESS_OCTETS: Final = 4
_HEADER: Final = 12
_RCODES: Final = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one question."""

    at: float
    """Seconds of time.monotonic when it went out."""
    in_table: bool
    seconds: float
    """How long its reply took; PATIENCE where there was none."""
    said: str
    """The address in the reply, else its RCODE, else NOTHING."""

    @property
    def answered(self) -> bool:
        """Whether it brought an address."""
        return self.said[0].isdigit()


def parse_asked(text: str) -> list[Asked]:
    """What the process printed. Raises ValueError."""
    return [Asked(*row) for row in json.loads(text)]


def read_reply(reply: bytes) -> str:
    """The address that a reply to a question for A ends in, else its RCODE."""
    if len(reply) < _HEADER or reply[3] & 0x0F:
        return _RCODES.get(reply[3] & 0x0F if len(reply) >= _HEADER else -1, "another error")
    # CoreDNS and we put the answer last where the query has no OPT.
    if reply[6:8] != b"\0\1" or reply[8:12] != bytes(4):
        return "no answer"
    return socket.inet_ntoa(reply[-_ADDRESS_OCTETS:])


class Asker:
    """One connected socket and what it waits for, by query ID."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._waiting: dict[bytes, tuple[float, int, bool]] = {}
        self.asked: list[Asked] = []

    def send(self, number: int) -> None:
        in_table = number % 2 == 0
        ident = (number & 0xFFFF).to_bytes(2, "big")
        message = query(f"h{number}.{TABLE_SUFFIX if in_table else OUTSIDE_SUFFIX}")
        self._waiting[ident] = time.monotonic(), time.time_ns(), in_table
        with contextlib.suppress(OSError):  # an ICMP error for an earlier one, or no room: this one is lost
            self._client.send(ident + message[2:])

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
        waited = self._waiting.pop(reply[:2], None)
        if waited is None:
            return
        at, sent, in_table = waited
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
        took = (seconds * 1_000_000_000 + nanoseconds - sent) / 1e9
        self.asked.append(Asked(at, in_table, took, read_reply(reply)))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def give_up(self) -> None:
        """Whatever has no reply yet has none."""
        self.asked += [Asked(at, in_table, PATIENCE, NOTHING) for at, _, in_table in self._waiting.values()]
        self._waiting.clear()


def ask(address: str, port: int, *, rate: float, seconds: float) -> list[Asked]:
    """Ask for some seconds, then wait for what is still missing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        client.setblocking(False)
        client.connect((address, port))
        asker = Asker(client)
        begun = time.monotonic()
        for number in range(round(rate * seconds)):
            asker.receive_until(begun + number / rate)
            asker.send(number)
        deadline = time.monotonic() + PATIENCE
        while asker.waiting and time.monotonic() < deadline:
            asker.receive_until(min(deadline, time.monotonic() + 0.01))
        asker.give_up()
        return asker.asked


def main(arguments: Sequence[str]) -> None:
    """The process."""
    address, port, rate, seconds = arguments
    asked: list[tuple[Any, ...]] = list(map(astuple, ask(address, int(port), rate=float(rate), seconds=float(seconds))))
    print(json.dumps(asked))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main(sys.argv[1:])
