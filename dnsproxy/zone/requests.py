"""Requests for a transfer, as the primary reads them and a replica writes them (RFC 1995 section 3, RFC 5936).

The law: pure; a request is read from the octets that wire.scan_query accepted, and nothing here raises for them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from dnsproxy.dns import wire
from dnsproxy.dns.records import format_opt
from dnsproxy.dns.wire import CLASS_IN, Query, Rcode, Type
from dnsproxy.zone.zone_records import format_zone_soa

_NUMBERS: Final = struct.Struct("!IIIII")
_SOA: Final = b"\0\6"
_FIXED: Final = 10
"""Octets of type, class, TTL and length."""
NOTIFY: Final = 4
"""The opcode (RFC 1996 section 3.2)."""


def serial_of_request(query: Query) -> int | None:
    """The serial in the authority section of an IXFR request; None if there is none."""
    return _serial_of_record(query.message, query.end) if query.message[8:10] == b"\0\1" else None


def soa_serial(message: bytes, data: int) -> int | None:
    """The serial in the SOA data that begins at an offset; None if it is malformed."""
    position = wire.skip_name(message, data)
    position = wire.skip_name(message, position) if position else 0
    if not position or position + _NUMBERS.size > len(message):
        return None
    serial: int = _NUMBERS.unpack_from(message, position)[0]
    return serial


def format_request(name: bytes, *, serial: int | None, ident: int, datagram: bool = False) -> bytes:
    """An IXFR request for what comes after a serial; an AXFR request without one.

    `datagram`: it goes over UDP, so it offers our size (RFC 6891 section 6.2.3).
    """
    opt = format_opt(do=False) if datagram else b""
    counts = (1, 0, 0 if serial is None else 1, 1 if opt else 0)
    question = name + struct.pack("!HH", Type.AXFR if serial is None else Type.IXFR, CLASS_IN)
    authority = b"" if serial is None else format_zone_soa(serial, ttl=0)
    return struct.pack("!HHHHHH", ident, 0, *counts) + question + authority + opt


def format_notify(name: bytes, *, serial: int, ttl: int, ident: int) -> bytes:
    """A NOTIFY that hints at the new serial (RFC 1996 section 3.7)."""
    head = struct.pack("!HHHHHH", ident, NOTIFY << 11 | wire.AA, 1, 1, 0, 0)
    return head + name + struct.pack("!HH", Type.SOA, CLASS_IN) + format_zone_soa(serial, ttl=ttl)


def opcode_of(message: bytes) -> int:
    """The opcode of a message with a whole header."""
    return message[2] >> 3 & 0xF


def notified_zone(message: bytes) -> tuple[bytes, int | None] | None:
    """The zone of a NOTIFY request, and the serial that it hints at; None for any other message."""
    end = wire.question_end(message)
    if not end or message[2] & 0x80 or opcode_of(message) != NOTIFY or message[end - 4 : end - 2] != _SOA:
        return None
    serial = _serial_of_record(message, end) if message[6:8] == b"\0\1" else None
    return message[wire.HEADER : end - 4].lower(), serial


def format_notify_reply(message: bytes, *, rcode: int = 0) -> bytes:
    """The answer to a NOTIFY: its header and question with QR (RFC 1996 section 4.7)."""
    end = wire.question_end(message)
    flags = wire.QR | wire.AA | NOTIFY << 11 | rcode
    return message[:2] + struct.pack("!HHHHH", flags, 1, 0, 0, 0) + message[wire.HEADER : end]


def answer_notify(message: bytes, take: Callable[[bytes, int | None], bool]) -> bytes | None:
    """The answer to a NOTIFY; None for any other message.

    `take` gets the zone and the serial, and returns whether the zone is one that is followed here.
    """
    found = notified_zone(message)
    if found is None:
        return None
    return format_notify_reply(message, rcode=Rcode.NOERROR if take(*found) else Rcode.NOTAUTH)


def _serial_of_record(message: bytes, start: int) -> int | None:
    """The serial of the record that begins at an offset; None if it is no SOA, or malformed."""
    position = wire.skip_name(message, start)
    return soa_serial(message, position + _FIXED) if position and message[position : position + 2] == _SOA else None
