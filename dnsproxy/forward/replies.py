"""The replies of upstreams: whether a reply belongs to a query, and what the client gets.

The law: a reply is passed on octet for octet, except for its ID. There are three exceptions, all in this module: an
error without a question, an NXDOMAIN that would deny a name of the table, a reply larger than the client accepts.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import refuse
from dnsproxy.dns import records, wire
from dnsproxy.dns.wire import HEADER, Query, Rcode

_ERRORS_WITHOUT_QUESTION: Final = (Rcode.FORMERR, Rcode.SERVFAIL, Rcode.NOTIMP, Rcode.REFUSED)


def belongs(reply: bytes, question: bytes) -> bool:
    """Whether a reply with the right ID answers this question (RFC 5452 section 9.1).

    Case is ignored in the question, because a server may restore it. A header with only an error code passes: some
    servers answer so when they refuse to parse a query.
    """
    if len(reply) < HEADER or reply[2] & 0xF8 != 0x80:  # noqa: PLR2004  # QR set, opcode QUERY
        return False
    if reply[4:6] != b"\0\1":
        return is_bare_error(reply)
    return reply.startswith(question, HEADER) or _same_question(reply[HEADER : HEADER + len(question)], question)


def is_usual(reply: bytes, question: bytes) -> bool:
    """Whether a reply belongs, and every client gets it unchanged unless its question is shielded: nearly every one."""
    return (
        reply.startswith(question, HEADER)
        and len(reply) <= wire.MINIMUM_UDP
        and reply[2] & 0xF8 == 0x80  # noqa: PLR2004  # as in belongs()
        and reply[4:6] == b"\0\1"
    )


def is_bare_error(reply: bytes) -> bool:
    """Whether a reply is only a header with an error code, and perhaps an OPT record."""
    counts = reply[4:HEADER]
    nothing = counts == bytes(8) and len(reply) == HEADER
    only_opt = counts == b"\0\0\0\0\0\0\0\1" and reply[HEADER : HEADER + 3] == b"\0\0\x29"
    return (nothing or only_opt) and reply[3] & 0xF in _ERRORS_WITHOUT_QUESTION


def _same_question(one: bytes, other: bytes) -> bool:
    return one[-4:] == other[-4:] and one[:-4].lower() == other[:-4].lower()


def pass_on(reply: bytes, query: Query, *, shields: bool, limit: int) -> bytes:
    """The reply for the client, from an upstream's reply to its query."""
    if reply[4:6] == b"\0\0" and is_bare_error(reply):
        # CoreDNS answers its client FORMERR after a reply without the question.
        return refuse(query, Rcode(reply[3] & 0xF)).message
    if shields and reply[3] & 0xF == Rcode.NXDOMAIN:
        # Without AD: this is not what was verified.
        reply = reply[:3] + bytes([reply[3] & 0xF0 & ~wire.AD]) + reply[4:]
    if len(reply) > limit:
        return _truncate(reply, query)
    return query.message[:2] + reply[2:]


def fail(query: Query, extended_error: int, *, counters: Counters, times: int = 1) -> bytes:
    """Our own SERVFAIL for a query without a reply; `times` is how many clients get it."""
    counters.own_by_rcode[Rcode.SERVFAIL] += times
    return refuse(query, Rcode.SERVFAIL, extended_error=extended_error).message


def client_limit(query: Query) -> int:
    """The largest reply that a UDP client accepts: its EDNS size, at least 512 (RFC 6891 section 6.2.3)."""
    return max(wire.MINIMUM_UDP, query.edns.udp_size) if query.edns else wire.MINIMUM_UDP


def _truncate(reply: bytes, query: Query) -> bytes:
    """The flags of the reply with TC, the question, and an OPT if the query has one: the client retries over TCP."""
    opt = records.format_opt(do=query.edns.do) if query.edns else b""
    flags = bytes([reply[2] | wire.TC >> 8, reply[3]])
    counts = b"\0\1\0\0\0\0" + (b"\0\1" if opt else b"\0\0")
    return query.message[:2] + flags + counts + query.question + opt
