"""The answers of a primary: SOA, AXFR (RFC 5936) and IXFR (RFC 1995), as bodies without their ID.

The law: pure; a body has the zone's name in its question, so the records of all messages are the same octets for every
secondary. A whole version begins and ends with its SOA; a difference names the old and the new one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from dnsproxy.dns import wire
from dnsproxy.dns.wire import CLASS_IN, Rcode, Type
from dnsproxy.zone.content import Difference, Piece
from dnsproxy.zone.zone_records import format_zone_ns, format_zone_soa

_LARGEST: Final = 60_000
"""Octets of records in one message: a message has 65,535, and TSIG and the question need some."""


class ZoneVersion:
    """The name and the SOA of one version of a zone."""

    __slots__ = ("name", "ns", "serial", "soa", "ttl")

    def __init__(self, name: bytes, serial: int, *, ttl: int) -> None:
        self.name, self.serial, self.ttl = name, serial, ttl
        self.soa = Piece(1, format_zone_soa(serial, ttl=ttl))
        self.ns = Piece(1, format_zone_ns(ttl=ttl))

    def soa_of(self, serial: int) -> Piece:
        """The SOA record of another version."""
        return Piece(1, format_zone_soa(serial, ttl=self.ttl))


def whole(version: ZoneVersion, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The records of an AXFR, in order (RFC 5936 section 2.2)."""
    yield version.soa
    yield version.ns
    yield from pieces
    yield version.soa


def incremental(version: ZoneVersion, difference: Difference, *, since: int) -> Iterator[Piece]:
    """The records of an IXFR from the version `since` (RFC 1995 section 4)."""
    yield version.soa
    if since != version.serial:
        yield version.soa_of(since)
        yield from difference.deleted
        yield version.soa
        yield from difference.added
        yield version.soa


def messages(version: ZoneVersion, records: Iterable[Piece], *, rtype: int, reply: int) -> Iterator[bytes]:
    """The bodies of messages with these records; `reply`: the flags."""
    question = version.name + struct.pack("!HH", rtype, CLASS_IN)
    found: list[bytes] = []
    count = size = 0
    for piece in records:
        if found and size + len(piece.octets) > _LARGEST:
            yield _body(question, count, b"".join(found), reply)
            count, found, size = 0, [], 0
        count += piece.records
        found.append(piece.octets)
        size += len(piece.octets)
    yield _body(question, count, b"".join(found), reply)


def one_record(version: ZoneVersion, record: Piece | None, *, rtype: int, reply: int) -> bytes:
    """The body of an answer with one record; None: NODATA, with the SOA (RFC 2308 section 2.2)."""
    question = version.name + struct.pack("!HH", rtype, CLASS_IN)
    if record is None:
        return struct.pack("!HHHHH", reply, 1, 0, 1, 0) + question + version.soa.octets
    return _body(question, record.records, record.octets, reply)


def apex_record(version: ZoneVersion, rtype: int) -> Piece | None:
    """The record of a type at the apex."""
    return {int(Type.SOA): version.soa, int(Type.NS): version.ns}.get(rtype)


def reply_head(query_flags: int, *, rcode: int = Rcode.NOERROR) -> int:
    """The flags of a primary's answer: QR and AA, RD copied (RFC 5936 section 2.2.1)."""
    return wire.QR | (wire.AA if rcode == Rcode.NOERROR else 0) | (query_flags & wire.RD) | rcode


def _body(question: bytes, count: int, octets: bytes, reply: int) -> bytes:
    return struct.pack("!HHHHH", reply, 1, count, 0, 0) + question + octets
