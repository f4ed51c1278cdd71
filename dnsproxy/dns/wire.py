"""The bounded scan of a DNS query: header, one question, OPT (RFC 1035 section 4.1, RFC 6891 section 6.1).

The law: nothing here allocates or loops in proportion to a count field, follows a compression pointer, or raises. Any
octets give a Query, or a Fault that decides what the server does.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Iterator
from enum import Enum, IntEnum
from functools import partial
from typing import Final, NamedTuple

DNS_PORT: Final = 53
"""The port of DNS over UDP and TCP (RFC 1035 section 4.2)."""

HEADER: Final = 12
"""Octets of a message header."""

CLASS_IN: Final = 1
OPCODE_QUERY: Final = 0

QR: Final = 0x8000
AA: Final = 0x0400
TC: Final = 0x0200
RD: Final = 0x0100
RA: Final = 0x0080
AD: Final = 0x0020
CD: Final = 0x0010
DO: Final = 0x8000
"""The DO bit, in the flags of an OPT record (RFC 3225)."""

MINIMUM_UDP: Final = 512
"""What every UDP client accepts (RFC 1035 section 4.2.1); a smaller EDNS size counts as this (RFC 6891 6.2.3)."""

OUR_UDP: Final = 1232
"""The size that we offer and the most that we send over UDP: never fragmented where IPv6 works (DNS flag day 2020)."""

# The extended errors that this server sends (RFC 8914 section 4).
CACHED_ERROR: Final = 13
NO_REACHABLE_AUTHORITY: Final = 22
NETWORK_ERROR: Final = 23

# The core of creating a named tuple, called directly because it runs for every forwarded query.
_new: Final = tuple.__new__
_ONE_QUESTION = b"\0\1\0\0\0\0\0\0"  # the counts of a header
_TYPE_AND_CLASS = struct.Struct("!HH").unpack_from
_MAXIMUM_LABEL = 63
_NAME_END_LIMIT = HEADER + 255
_POINTER = 0xC0
_RECORD_FIXED = 10  # type, class, TTL, RDLENGTH
_OPTION_FIXED = 4  # code, length
_KEEPALIVE = b"\0\x0b"  # the code of edns-tcp-keepalive (RFC 7828 section 3.1)
_MAXIMUM_ADDITIONAL = 2  # one OPT and one TSIG or SIG(0); a query has nothing else


class Type(IntEnum):
    """The query types that the server handles (IANA DNS parameters)."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    HINFO = 13
    TXT = 16
    AAAA = 28
    OPT = 41
    SVCB = 64
    HTTPS = 65
    TSIG = 250
    IXFR = 251
    AXFR = 252
    ANY = 255


class Rcode(IntEnum):
    """Response codes (RFC 6895 section 2.3)."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    NOTAUTH = 9
    BADVERS = 16


class Fault(Enum):
    """Why octets are not a query that the server can handle."""

    SHORT = "shorter than a header"
    RESPONSE = "a response, not a query"
    OPCODE = "an opcode other than QUERY"
    FORM = "malformed"


class Edns(NamedTuple):
    """The OPT record of a query."""

    version: int
    udp_size: int
    do: bool
    keepalive: bool = False
    """Whether the client asks how long a connection may be idle (RFC 7828); without meaning over UDP."""


class Query(NamedTuple):
    """A query with a well-formed header, question and OPT."""

    message: bytes
    name: bytes
    """The wire name of the question, in lower case, ASCII only (RFC 4343)."""
    type: int
    klass: int
    end: int
    """Where the question ends."""
    edns: Edns | None

    @property
    def question(self) -> bytes:
        """The question section as received, to be echoed bit for bit."""
        return self.message[HEADER : self.end]


def plain_query(name: bytes, rtype: int) -> Query:
    """A query of our own for a lower-case wire name: ID 0, RD set, no OPT."""
    question = name + struct.pack("!HH", rtype, CLASS_IN)
    message = struct.pack("!HHHHHH", 0, RD, 1, 0, 0, 0) + question
    return Query(message, name, rtype, CLASS_IN, len(message), None)


def scan_query(message: bytes) -> Query | Fault:
    """A message as a query, or the reason why it is not one."""
    size = len(message)
    if size < HEADER:
        return Fault.SHORT
    if message[2] & 0xF8:
        return Fault.RESPONSE if message[2] & 0x80 else Fault.OPCODE
    name_end = skip_question_name(message)
    end = name_end + 4
    counts = message[4:HEADER]
    if not counts.startswith(b"\0\1") or not name_end or end > size:
        return Fault.FORM
    name = message[HEADER:name_end].lower()
    qtype, klass = _TYPE_AND_CLASS(message, name_end)
    if end == size and counts == _ONE_QUESTION:
        return _new(Query, (message, name, qtype, klass, end, None))
    # An incremental transfer names its SOA in the authority section (RFC 1995 section 3).
    edns = _scan_records(message, end, most_authorities=int(qtype == Type.IXFR))
    if isinstance(edns, Fault):
        return edns
    return _new(Query, (message, name, qtype, klass, end, edns))


def skip_question_name(message: bytes) -> int:
    """Where the name of the first question ends, or 0 if it is malformed, compressed or too long.

    A name right after the header has nothing to point at, so a pointer in it is a fault (RFC 9267 section 2).
    """
    position = HEADER
    size = len(message)
    while position < size:
        length = message[position]
        position += 1
        if length == 0:
            return position if position <= _NAME_END_LIMIT else 0
        if length > _MAXIMUM_LABEL:
            return 0
        position += length
    return 0


def rcode_of(reply: bytes) -> int:
    """The response code in the header of a reply, without its EDNS part."""
    return reply[3] & 0xF


def is_truncated(reply: bytes) -> bool:
    """Whether a reply has the TC flag."""
    return bool(reply[2] & TC >> 8)


def question_end(message: bytes) -> int:
    """Where a single well-formed question ends, or 0 if there is none."""
    if len(message) < HEADER or message[4:6] != b"\0\1":
        return 0
    end = skip_question_name(message)
    return end + 4 if end and end + 4 <= len(message) else 0


def _scan_records(message: bytes, position: int, *, most_authorities: int) -> Edns | Fault | None:
    authorities = message[8] << 8 | message[9]
    additional = message[10] << 8 | message[11]
    if message[6:8] != b"\0\0" or authorities > most_authorities or additional > _MAXIMUM_ADDITIONAL:
        return Fault.FORM
    edns: Edns | None = None
    for index in range(authorities + additional):
        owner = position
        position = skip_name(message, position)
        fixed_end = position + _RECORD_FIXED
        if not position or fixed_end > len(message):
            return Fault.FORM
        data_end = fixed_end + (message[fixed_end - 2] << 8 | message[fixed_end - 1])
        if data_end > len(message):
            return Fault.FORM
        if message[position : position + 2] == b"\0\x29":
            if edns is not None or index < authorities or message[owner]:
                return Fault.FORM
            keepalive = _scan_options(message, fixed_end, data_end)
            if keepalive is None:
                return Fault.FORM
            edns = _edns(message, position, keepalive=keepalive)
        position = data_end
    # A server that reads on could take octets after the message for a record (CVE-2018-14663).
    return edns if position == len(message) else Fault.FORM


def _edns(message: bytes, position: int, *, keepalive: bool) -> Edns:
    size = message[position + 2] << 8 | message[position + 3]
    return Edns(message[position + 5], size, do=bool(message[position + 6] & 0x80), keepalive=keepalive)


def skip_name(message: bytes, position: int) -> int:
    """Where a name ends, 0 if it is malformed or longer than 255 octets. A pointer ends it and is not followed."""
    limit = position + 255
    size = len(message)
    while position < size and position < limit:
        length = message[position]
        if length == 0:
            return position + 1
        if length >= _POINTER:
            return position + 2
        if length > _MAXIMUM_LABEL:
            return 0
        position += 1 + length
    return 0


def _scan_options(message: bytes, position: int, end: int) -> bool | None:
    """Whether edns-tcp-keepalive is among the options; None if they are malformed."""
    keepalive = False
    while position < end:
        if position + _OPTION_FIXED > end:
            return None
        keepalive = keepalive or message[position : position + 2] == _KEEPALIVE
        position += _OPTION_FIXED + (message[position + 2] << 8 | message[position + 3])
    return keepalive if position == end else None


_ID_BLOCK: Final = 512


def random_ids() -> Iterator[bytes]:
    """An endless stream of message IDs from the system's random source, two octets each."""
    # Not a generator: resuming one for each forwarded query takes as long as all the rest here.
    return itertools.chain.from_iterable(map(_split_ids, iter(partial(os.urandom, _ID_BLOCK), b"")))


def _split_ids(block: bytes) -> list[bytes]:
    return [block[index : index + 2] for index in range(0, len(block), 2)]
