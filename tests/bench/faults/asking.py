"""Asks for new names on a steady clock and keeps what became of every question; a process of its own.

The law: every question is for a name of its own, so no cache stands between it and the server.

    python -m tests.bench.faults.asking ADDRESS PORT RATE SECONDS
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from tests.bench.steady_questions import ask_steadily
from tests.kit.messages import query

TABLE_SUFFIX: Final = "apps.example.org"
"""Every second question is for a name below this one, the others are for names outside the table."""
OUTSIDE_SUFFIX: Final = "www.example.org"

PATIENCE: Final = 8.0
"""Seconds until a question counts as lost: CoreDNS itself gives up after five."""
NOTHING: Final = "nothing"
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


def ask(address: str, port: int, *, rate: float, seconds: float) -> list[Asked]:
    """Ask for some seconds, then wait for what is still missing."""
    questions = map(_question, range(round(rate * seconds)))
    return [
        Asked(one.at, _in_table(one.number), one.seconds, NOTHING if one.reply is None else read_reply(one.reply))
        for one in ask_steadily((address, port), questions, rate=rate, patience=PATIENCE)
    ]


def _in_table(number: int) -> bool:
    return number % 2 == 0


def _question(number: int) -> bytes:
    return query(f"h{number}.{TABLE_SUFFIX if _in_table(number) else OUTSIDE_SUFFIX}")


def main(arguments: Sequence[str]) -> None:
    """The process."""
    address, port, rate, seconds = arguments
    asked: list[tuple[Any, ...]] = list(map(astuple, ask(address, int(port), rate=float(rate), seconds=float(seconds))))
    print(json.dumps(asked))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main(sys.argv[1:])
