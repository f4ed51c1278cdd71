"""Whether a server answers rightly: one question asked, the reply read by dnspython.

The law: a server that answers wrongly is not measured, however fast it is.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final

import dns.exception

from tests.bench.dns.workloads import Question
from tests.bench.kit.faults import CannotServe
from tests.kit.messages import Reading, question, read_dnspython

_START_SECONDS: Final = 60.0
_REPLY_SECONDS: Final = 0.5
_WRONG_SECONDS: Final = 5.0
"""For a server that replies, but not rightly: some do until their zone is read."""


NO_REPLY: Final = "no reply"


def find_fault(reply: bytes, asked: Question, *, edns: bool, address: str | None = None) -> str | None:
    """What is wrong with a reply; None where nothing is."""
    try:
        reading = read_dnspython(reply)
    except dns.exception.DNSException as error:
        return f"dnspython cannot read the reply: {error!r}"
    if reading.rcode:
        return f"rcode {reading.rcode}"
    if reading.question != (_question_of(asked),):
        return f"another question: {reading.question}"
    if edns and reading.opt is None:
        return "no OPT"
    return _find_wrong_address(reading, address or asked.address)


def _question_of(asked: Question) -> tuple[bytes, int, int]:
    octets = question(asked.name)
    return octets[:-4], int.from_bytes(octets[-4:-2], "big"), int.from_bytes(octets[-2:], "big")


def _find_wrong_address(reading: Reading, expected: str) -> str | None:
    found: list[Any] = [str(row[3]) for row in reading.answers]
    return None if found == [expected] else f"{found} instead of {expected}"


def find_fault_at(port: int, asked: Question, *, edns: bool, address: str | None = None) -> str | None:
    """The same for what is on a port of loopback, NO_REPLY included."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(_REPLY_SECONDS)
        try:
            client.connect(("127.0.0.1", port))
            client.send(asked.message(edns=edns))
            reply = client.recv(65535)
        except (TimeoutError, ConnectionRefusedError):
            return NO_REPLY
    return find_fault(reply, asked, edns=edns, address=address)


def wait_right(process: subprocess.Popen[bytes], find: Callable[[], str | None]) -> None:
    """Look until `find` finds no fault any more. Raises CannotServe with what last was wrong."""
    deadline = time.monotonic() + _START_SECONDS
    replied = False
    while (fault := find()) is not None:
        if process.poll() is not None:
            raise CannotServe(f"it ended with status {process.returncode}")
        if fault != NO_REPLY and not replied:
            replied, deadline = True, time.monotonic() + _WRONG_SECONDS
        if time.monotonic() > deadline:
            raise CannotServe(fault)
        time.sleep(0.1)
