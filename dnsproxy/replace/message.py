"""A reply as its records, and records as a reply again: names are read through pointers and written anew.

The law: bounded, and any octets give a Reply or None: at most MOST_RECORDS, and a pointer must lead backwards (RFC 1035
section 4.1.4, RFC 9267 section 2). What is written has the same names, case included, and the same data as what was
read; only their compression may differ. Data of a type that is not known here is copied (RFC 3597 section 4).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import HEADER

MOST_RECORDS: Final = 1_000
"""In one reply; one with more is passed on as it is. 64 KiB have room for 4,000 addresses."""

_COUNTS: Final = struct.Struct("!HHHH")
_FIXED: Final = struct.Struct("!HHIH")
_POINTER: Final = 0xC0
_MOST_POINTERS: Final = 64
_LAST_TARGET: Final = 0x3FFF
"""The last offset that a pointer can name."""

_NAME: Final = "name"
_STRING: Final = "string"
_LAYOUTS: Final[dict[int, tuple[int | str, ...]]] = {
    # Types whose data may have compressed names (RFC 1035, and RFC 3597 section 4): octets, strings and names in order.
    **dict.fromkeys((2, 3, 4, 5, 7, 8, 9, 12, 39), (_NAME,)),  # NS MD MF CNAME MB MG MR PTR DNAME
    **dict.fromkeys((6, 14, 17), (_NAME, _NAME)),  # SOA MINFO RP
    **dict.fromkeys((15, 18, 21, 36), (2, _NAME)),  # MX AFSDB RT KX
    26: (2, _NAME, _NAME),  # PX
    33: (6, _NAME),  # SRV
    35: (4, _STRING, _STRING, _STRING, _NAME),  # NAPTR
}
_COMPRESSED: Final = frozenset({2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15})
"""Types in whose data names may be written with pointers: those that every reader knows (RFC 3597 section 4)."""

Data = tuple[bytes, ...]
"""The parts of a record's data in their order: octets, and names where the type has them."""


class Record(NamedTuple):
    """One resource record."""

    owner: bytes
    """Uncompressed, as it was written."""
    type: int
    klass: int
    ttl: int
    data: Data
    layout: tuple[bool, ...]
    """Which parts of the data are names."""


class Reply(NamedTuple):
    """A whole reply with one question."""

    head: bytes
    """Its first four octets: ID and flags."""
    question: bytes
    sections: tuple[list[Record], list[Record], list[Record]]
    """Answer, authority and additional."""

    @property
    def qname(self) -> bytes:
        """The lower-case wire name of the question."""
        return self.question[:-4].lower()


class _Malformed(Exception):
    pass


def read_reply(message: bytes) -> Reply | None:
    """The records of a reply with one question; None for octets that are no whole one, and for too many records."""
    end = wire.question_end(message)
    if not end:
        return None
    _, *counts = _COUNTS.unpack_from(message, 4)
    if sum(counts) > MOST_RECORDS:
        return None
    sections: tuple[list[Record], list[Record], list[Record]] = ([], [], [])
    position = end
    try:
        for section, count in zip(sections, counts, strict=True):
            for _ in range(count):
                record, position = _read_record(message, position)
                section.append(record)
    except (_Malformed, struct.error, IndexError):
        return None
    return Reply(message[:4], message[HEADER:end], sections) if position == len(message) else None


def write_reply(reply: Reply) -> bytes:
    """The octets of a reply."""
    counts = _COUNTS.pack(1, *map(len, reply.sections))
    writer = _Writer(reply.head + counts)
    writer.name(reply.question[:-4], compress=True)
    writer.octets += reply.question[-4:]
    for section in reply.sections:
        for record in section:
            writer.record(record)
    return bytes(writer.octets)


def _read_record(message: bytes, position: int) -> tuple[Record, int]:
    owner, position = _read_name(message, position)
    rtype, klass, ttl, size = _FIXED.unpack_from(message, position)
    start = position + _FIXED.size
    end = start + size
    if end > len(message):
        raise _Malformed
    data, layout = _read_data(message, start, end, _LAYOUTS.get(rtype, ()))
    return Record(owner, rtype, klass, ttl, data, layout), end


def _read_data(message: bytes, position: int, end: int, parts: tuple[int | str, ...]) -> tuple[Data, tuple[bool, ...]]:
    data: list[bytes] = []
    layout: list[bool] = []
    for part in parts:
        start = position
        if part == _NAME:
            found, position = _read_name(message, position)
        else:
            position += part if isinstance(part, int) else 1 + message[position]
            found = message[start:position]
        if position > end:
            raise _Malformed
        data.append(found)
        layout.append(part == _NAME)
    if position < end or not parts:
        data.append(message[position:end])
        layout.append(False)
    return tuple(data), tuple(layout)


def _read_name(message: bytes, position: int) -> tuple[bytes, int]:
    """A name without pointers, and where it ends."""
    labels: list[bytes] = []
    after = size = 0
    before = position
    for _ in range(names.MAXIMUM_NAME + _MOST_POINTERS):
        length = message[position]
        if length >= _POINTER:
            after = after or position + 2
            position = (length & ~_POINTER) << 8 | message[position + 1]
            if position >= before:
                raise _Malformed
            before = position
            continue
        end = position + 1 + length
        size += 1 + length
        if length > names.MAXIMUM_LABEL or size > names.MAXIMUM_NAME or end > len(message):
            raise _Malformed
        labels.append(message[position:end])
        position = end
        if not length:
            return b"".join(labels), after or position
    raise _Malformed


class _Writer:
    """Writes names with pointers to where the same octets stand already: another case is another name."""

    def __init__(self, head: bytes) -> None:
        self.octets = bytearray(head)
        self._known: dict[bytes, int] = {}

    def record(self, record: Record) -> None:
        """Append a record."""
        self.name(record.owner, compress=True)
        fixed = len(self.octets)
        self.octets += _FIXED.pack(record.type, record.klass, record.ttl, 0)
        start = len(self.octets)
        for part, is_name in zip(record.data, record.layout, strict=True):
            if is_name:
                self.name(part, compress=record.type in _COMPRESSED)
            else:
                self.octets += part
        struct.pack_into("!H", self.octets, fixed + 8, len(self.octets) - start)

    def name(self, name: bytes, *, compress: bool) -> None:
        """Append a name."""
        position = 0
        while name[position]:
            rest = name[position:]
            at = self._known.get(rest)
            if at is not None and compress:
                self.octets += struct.pack("!H", _POINTER << 8 | at)
                return
            if at is None and len(self.octets) <= _LAST_TARGET:
                self._known[rest] = len(self.octets)
            end = position + 1 + name[position]
            self.octets += name[position:end]
            position = end
        self.octets.append(0)
