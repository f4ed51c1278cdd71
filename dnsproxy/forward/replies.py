"""Upstream's replies: whether one belongs to a query, and what of it the client gets.

The law: a reply is passed on octet for octet, its ID aside. The exceptions are named here, one function each: an error
without a question, an NXDOMAIN that would deny a name of ours, a reply larger than the client takes.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.answers.decide import refuse
from dnsproxy.dns import records, wire
from dnsproxy.dns.wire import HEADER, Query, Rcode

_ERRORS_WITHOUT_QUESTION: Final = (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)


def belongs(reply: bytes, question: bytes) -> bool:
    """Whether octets from upstream, their ID found right, answer this question (RFC 5452 section 9.1).

    The question is compared without case, as a server may restore it. A header that only states an error passes: some
    servers answer so what they will not parse.
    """
    if len(reply) < HEADER or reply[2] & 0xF8 != 0x80:  # noqa: PLR2004  # QR set, opcode QUERY
        return False
    if reply[4:6] != b"\0\1":
        return is_bare_error(reply)
    return reply.startswith(question, HEADER) or _same_question(reply[HEADER : HEADER + len(question)], question)


def is_bare_error(reply: bytes) -> bool:
    """Whether a reply is no more than a header with an error code, and perhaps an OPT record."""
    counts = reply[4:HEADER]
    nothing = counts == bytes(8) and len(reply) == HEADER
    only_opt = counts == b"\0\0\0\0\0\0\0\1" and reply[HEADER : HEADER + 3] == b"\0\0\x29"
    return (nothing or only_opt) and reply[3] & 0xF in _ERRORS_WITHOUT_QUESTION


def _same_question(one: bytes, other: bytes) -> bool:
    return one[-4:] == other[-4:] and one[:-4].lower() == other[:-4].lower()


def pass_on(reply: bytes, query: Query, *, shields: bool, limit: int) -> bytes:
    """What the client gets for a reply that belongs to its query."""
    if reply[4:6] == b"\0\0" and is_bare_error(reply):
        # CoreDNS gives its client FORMERR for a reply without the question.
        return refuse(query, Rcode(reply[3] & 0xF)).message
    if shields and reply[3] & 0xF == Rcode.NXDOMAIN:
        reply = reply[:3] + bytes([reply[3] & 0xF0]) + reply[4:]
    if len(reply) > limit:
        return _truncate(reply, query)
    return query.message[:2] + reply[2:]


def client_limit(query: Query) -> int:
    """The most octets that a UDP client takes: what it says, at least 512 (RFC 6891 section 6.2.3)."""
    return max(wire.MINIMUM_UDP, query.edns.udp_size) if query.edns else wire.MINIMUM_UDP


def _truncate(reply: bytes, query: Query) -> bytes:
    """The reply's flags with TC, the question, an OPT where one is due: the client comes back over TCP (RFC 2181 9)."""
    opt = records.format_opt(do=query.edns.do) if query.edns else b""
    flags = bytes([reply[2] | wire.TC >> 8, reply[3]])
    counts = b"\0\1\0\0\0\0" + (b"\0\1" if opt else b"\0\0")
    return query.message[:2] + flags + counts + query.question + opt
