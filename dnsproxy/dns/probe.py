"""The probe: a name that only dnsproxy answers, which shows whether the queries of a zone are forwarded to it.

The law: `NONCE._switchback-probe.ZONE`, type TXT, is answered in every zone, whatever the table contains, because a
stanza may forward some zones and not others. The nonce is any label, so that a person can ask with dig. Programs draw
128 random bits each time: no cache has such a name, and an attacker who does not see the query cannot forge the answer.
No host can have the name, because host labels have no underscore (RFC 8552 section 1.1).
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

from dnsproxy.dns import names, records, wire
from dnsproxy.dns.records import Records
from dnsproxy.dns.wire import Type

LABEL: Final = "_switchback-probe"
NONCE_DIGITS: Final = 32
"""Hexadecimal digits in the nonce of a program: 128 bits."""
TEXT: Final = b"switchback dnsproxy"
"""The content of the one TXT record."""

_LONGEST_STRING: Final = 255
_LABEL: Final = bytes([len(LABEL)]) + LABEL.encode()
_STRING: Final = bytes([len(TEXT)]) + TEXT


def make_row(forwards: str = "") -> Records:
    """The answer: one record with TTL 0, so that no cache keeps it.

    `forwards` becomes its second string: where this server forwards all other names, in at most 255 ASCII characters.
    """
    text = forwards.encode("ascii", errors="replace")[:_LONGEST_STRING]
    return Records(1, 0, records.format_record(Type.TXT, 0, _STRING + (bytes([len(text)]) + text if text else b"")))


ROW: Final = make_row()
"""The answer of a server that does not say where it forwards."""


class Reply(Enum):
    """Who answered a probe."""

    OURS = "dnsproxy answered"
    OTHER = "another server answered"
    NONE = "not a reply to this probe"


def probe_name(zone: str, nonce: str) -> bytes:
    """The wire name of a probe for a zone in normal form; the empty text and `.` are the root.

    Raises ValueError if the zone is too long for the name of a probe below it.
    """
    if len(nonce) != NONCE_DIGITS:
        raise ValueError(f"a nonce has {NONCE_DIGITS} digits")
    wire_name = bytes([NONCE_DIGITS]) + nonce.encode() + _LABEL + names.to_wire(zone.removesuffix("."))
    if len(wire_name) > names.MAXIMUM_NAME:
        raise ValueError(f"{zone} is too long to be probed")
    return wire_name


def is_probe(name: bytes) -> bool:
    """Whether a lower-case wire name is that of a probe."""
    return name.startswith(_LABEL, 1 + name[0])


def format_query(name: bytes, ident: int) -> bytes:
    """The query for the wire name of a probe."""
    return struct.pack("!H", ident) + wire.plain_query(name, Type.TXT).message[2:]


def read_reply(query: bytes, reply: bytes) -> Reply:
    """Who answered a query of format_query.

    A server on the way may rewrite the answer (CoreDNS does), so its content is searched, not compared whole. The nonce
    keeps an attacker who does not see the query from forging an answer.
    """
    end = wire.question_end(query)
    echoed = reply[wire.HEADER : end].lower() == query[wire.HEADER : end]
    if len(reply) < wire.HEADER or reply[:2] != query[:2] or not reply[2] & 0x80 or not echoed:
        return Reply.NONE
    rcode, answers = reply[3] & 0xF, reply[6] << 8 | reply[7]
    return Reply.OURS if rcode == 0 and answers and _STRING in reply[end:] else Reply.OTHER


def read_forwards(reply: bytes) -> str | None:
    """The second string of an answer of ours; None if the server that answers has no such string."""
    _, found, rest = reply.partition(_STRING)
    # The record ends the reply, or an OPT follows, which begins with the root's name: an octet 0.
    if not found or not rest or not rest[0] or len(rest) <= rest[0]:
        return None
    return rest[1 : 1 + rest[0]].decode("ascii", errors="replace")
