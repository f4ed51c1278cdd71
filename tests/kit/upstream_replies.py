"""An upstream's replies to a query: the correct one and every wrong one, and messages in their TCP form.

The law: built by hand from RFC 1035 section 4.1 and never by the code under test, which must not judge itself.
"""

from __future__ import annotations

import struct
from typing import Final

from tests.kit import messages

NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)

_HEADER: Final = 12
_ADDRESS: Final = bytes([198, 51, 100, 7])
_TC: Final = 0x0200


def question_of(asked: bytes) -> bytes:
    """The question section of a query without compression."""
    end = _HEADER
    while asked[end]:
        end += 1 + asked[end]
    return asked[_HEADER : end + 5]


def right(asked: bytes, *, rcode: int = NOERROR, answers: int = 1, flags: int = 0) -> bytes:
    """A reply with the query's ID and question, and A records."""
    head = struct.pack("!HHHHH", 0x8180 | flags | rcode, 1, answers, 0, 0)
    return asked[:2] + head + question_of(asked) + messages.record(messages.A, _ADDRESS) * answers


def sized(asked: bytes, octets: int) -> bytes:
    """A correct reply of an exact size: its one record has an unknown type."""
    head = asked[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + question_of(asked)
    return head + messages.record(65280, bytes(octets - len(head) - 12))


def truncated(asked: bytes) -> bytes:
    """A reply with TC and no records."""
    return right(asked, answers=0, flags=_TC)


def wrong_id(asked: bytes) -> bytes:
    """A reply whose ID is off by one."""
    return struct.pack("!H", (int.from_bytes(asked[:2], "big") + 1) & 0xFFFF) + right(asked)[2:]


def other_question(asked: bytes, name: str = "other.example.net", qtype: int = messages.A, klass: int = 1) -> bytes:
    """The correct ID with an answer to another question."""
    return asked[:2] + struct.pack("!HHHHH", 0x8180, 1, 0, 0, 0) + messages.question(name, qtype, klass)


def without_qr(asked: bytes) -> bytes:
    """A reply with the QR bit of a query."""
    reply = right(asked)
    return reply[:2] + bytes([reply[2] & 0x7F]) + reply[3:]


def header_only(asked: bytes, rcode: int) -> bytes:
    """Only a header."""
    return asked[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 0, 0, 0, 0)


def padded_query(name: str, octets: int) -> bytes:
    """A query padded to an exact size by an EDNS padding option (RFC 7830)."""
    smallest = messages.query(name, additional=(messages.opt_record(options=messages.option(12)),))
    padding = messages.option(12, bytes(octets - len(smallest)))
    return messages.query(name, additional=(messages.opt_record(options=padding),))


def rcode_of(reply: bytes) -> int:
    return reply[3] & 0xF


def is_truncated(reply: bytes) -> bool:
    return bool(reply[2] & _TC >> 8)


def framed(message: bytes) -> bytes:
    """A message with its length prefix, as over TCP (RFC 1035 section 4.2.2)."""
    return struct.pack("!H", len(message)) + message
