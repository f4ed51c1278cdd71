"""The records of a whole message: where each begins and what it is, with names expanded (RFC 1035 section 4.1).

The law: pure and bounded; pointers lead only backwards, and a malformed message is a ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from dnsproxy.dns.names import MAXIMUM_LABEL, MAXIMUM_NAME
from dnsproxy.dns.wire import HEADER

_POINTER: Final = 0xC0
_FIXED: Final = struct.Struct("!HHIH")
_SECTIONS: Final = 4
_MOST_POINTERS: Final = 127
"""In one name: it has no more labels, and a chain of 8,000 pointers would exhaust the stack."""


class Record(NamedTuple):
    """One record, or one question without TTL and data."""

    section: int
    """0 question, 1 answer, 2 authority, 3 additional."""
    start: int
    name: bytes
    """The owner as a wire name in lower case."""
    type: int
    klass: int
    ttl: int
    data: int
    """Where the data begins."""
    end: int


def walk_records(message: bytes) -> Iterator[Record]:
    """All records of a message, in order. Raises ValueError."""
    if len(message) < HEADER:
        raise ValueError("the message is shorter than a header")
    counts = struct.unpack_from("!HHHH", message, 4)
    position = HEADER
    # Nearly all owners of a transfer end in the same name.
    suffixes: dict[int, bytes] = {}
    try:
        for section in range(_SECTIONS):
            for _ in range(counts[section]):
                record = _read_record(message, position, section, suffixes)
                position = record.end
                yield record
    except (IndexError, struct.error):
        raise ValueError("the message is cut short") from None
    if position != len(message):
        raise ValueError("the message has octets after its records")


def _read_record(message: bytes, start: int, section: int, suffixes: dict[int, bytes]) -> Record:
    name, position = read_name(message, start, suffixes)
    if section == 0:
        rtype, klass = struct.unpack_from("!HH", message, position)
        return Record(section, start, name, rtype, klass, 0, position + 4, position + 4)
    rtype, klass, ttl, size = _FIXED.unpack_from(message, position)
    data = position + _FIXED.size
    if data + size > len(message):
        raise ValueError("the data of a record is cut short")
    return Record(section, start, name, rtype, klass, ttl, data, data + size)


def read_name(
    message: bytes, position: int, suffixes: dict[int, bytes], *, pointers: int = _MOST_POINTERS
) -> tuple[bytes, int]:
    """A name in lower case, and where it ends. Raises ValueError or IndexError.

    `suffixes`: names by the offset of a pointer to them, known from before; `pointers`: how many may follow each other.
    """
    start = position
    while True:
        length = message[position]
        if length == 0:
            name = message[start : position + 1].lower()
            end = position + 1
            break
        if length >= _POINTER:
            target = (length & 0x3F) << 8 | message[position + 1]
            suffix = suffixes.get(target)
            if suffix is None:
                # Only backwards, so that no chain of pointers is endless.
                if target >= start:
                    raise ValueError("a pointer in a name leads forward")
                if not pointers:
                    raise ValueError("a name has too many pointers")
                suffix = suffixes[target] = read_name(message, target, {}, pointers=pointers - 1)[0]
            name = message[start:position].lower() + suffix
            end = position + 2
            break
        if length > MAXIMUM_LABEL:
            raise ValueError("a label of a name is too long")
        position += 1 + length
    if len(name) > MAXIMUM_NAME:
        raise ValueError("a name is too long")
    return name, end
