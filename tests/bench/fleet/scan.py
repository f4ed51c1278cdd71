"""A transfer, read as little as possible: the lengths of its messages, its first SOA, and where it ends. Pure.

The law: a body is never looked at, so that one process can be thousands of secondaries. The end is the message whose
last octets are the numbers of the first SOA (RFC 5936 section 2.2, RFC 1995 section 4); requests have no EDNS and no
TSIG over TCP, so that nothing comes after the records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Type

NUMBERS: Final = 20
"""Octets of the five numbers at the end of an SOA record, the serial first."""
HEAD: Final = 1024
"""Octets of the first message that are looked at: its question and its first record are in them."""
_LENGTH: Final = 2
_RECORD: Final = 10
"""Octets between a record's owner and its data."""


class NotATransfer(Exception):
    """An answer that is no part of a transfer; the message says why."""


@dataclass(frozen=True, slots=True)
class First:
    """The beginning of an answer."""

    records: int
    """In the answer section of this message."""
    numbers: bytes
    """Of the SOA that comes first."""

    @property
    def serial(self) -> int:
        """The serial of the version that the primary has."""
        return int.from_bytes(self.numbers[:4], "big")


def read_first(message: bytes) -> First:
    """The beginning of an answer to SOA, IXFR or AXFR, cut after HEAD octets or whole. Raises NotATransfer."""
    if len(message) < wire.HEADER:
        raise NotATransfer("a message without a header")
    if rcode := wire.rcode_of(message):
        raise NotATransfer(f"rcode {rcode}")
    records: int = struct.unpack_from("!H", message, 6)[0]
    position = wire.question_end(message) if message[4:6] == b"\0\1" else wire.HEADER
    position = wire.skip_name(message, position) if position and records else 0
    if not position or message[position : position + 2] != bytes((0, Type.SOA)):
        raise NotATransfer("it does not begin with an SOA")
    position = wire.skip_name(message, position + _RECORD)
    position = wire.skip_name(message, position) if position else 0
    if not position or len(message) < position + NUMBERS:
        raise NotATransfer("its SOA is cut short")
    return First(records, message[position : position + NUMBERS])


class TransferScan:
    """One answer over TCP: `wanted` says what to receive next."""

    def __init__(self, *, incremental: bool) -> None:
        self.first: First | None = None
        self.messages = 0
        self.octets = 0
        self.is_done = False
        self._incremental = incremental
        self._skip = 0
        self._kept = bytearray()
        self._goal = _LENGTH
        self._in_body = False
        self._left = 0
        """Octets of a message after its head."""
        self._tail = b""

    def wanted(self) -> tuple[int, bool]:
        """How many octets to receive at most, and whether they may be thrown away."""
        return (self._skip, True) if self._skip else (self._goal - len(self._kept), False)

    def skipped(self, count: int) -> None:
        """So many octets were thrown away."""
        self._skip -= count
        self.octets += count

    def received(self, octets: bytes) -> None:
        """These came, no more than were wanted. Raises NotATransfer."""
        self._kept += octets
        self.octets += len(octets)
        if len(self._kept) < self._goal:
            return
        whole = bytes(self._kept)
        self._kept.clear()
        if not self._in_body:
            self._begin_message(int.from_bytes(whole, "big"))
        elif self.first is None:
            self.first = read_first(whole)
            self._take_rest(whole, self._left)
        else:
            self._end_message((self._tail + whole)[-NUMBERS:])

    def _begin_message(self, size: int) -> None:
        self._in_body = True
        self.messages += 1
        if size < wire.HEADER:
            raise NotATransfer("a message without a header")
        if self.first is None:
            self._goal = min(size, HEAD)
            self._left = size - self._goal
        else:
            self._take_rest(b"", size)

    def _take_rest(self, before: bytes, size: int) -> None:
        """Throw away what is left of a message, but for its last octets."""
        if not size:
            self._end_message(before[-NUMBERS:])
            return
        self._tail = before[-NUMBERS:]
        self._skip = max(0, size - NUMBERS)
        self._goal = size - self._skip

    def _end_message(self, tail: bytes) -> None:
        assert self.first is not None
        self._in_body, self._goal = False, _LENGTH
        alone = self.messages == 1 and self.first.records == 1
        self.is_done = self._incremental if alone else tail == self.first.numbers
