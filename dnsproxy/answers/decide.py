"""The decision about one query: octets in, a named outcome out. No I/O, no clock, no exception.

The law: `decide` is authoritative. quick.py gives the same replies to plain queries in less time.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.table import HostTable
from dnsproxy.dns import probe, records, wire
from dnsproxy.dns.records import Records
from dnsproxy.dns.wire import Fault, Query, Rcode, Type
from dnsproxy.replace.replies import is_exempt

_TXT: Final = int(Type.TXT)
_TRANSFERS: Final = frozenset({int(Type.AXFR), int(Type.IXFR)})
# As in wire.py.
_new: Final = tuple.__new__


class Answer(NamedTuple):
    """Send this reply: the name is in the table."""

    message: bytes
    beside: Forward | None = None
    """To be asked as well, unless that is known: where the name leads is to be reported, or to be verified again."""


class Refuse(NamedTuple):
    """Send this error: the query is neither answered nor forwarded."""

    message: bytes
    rcode: Rcode


class Forward(NamedTuple):
    """Forward the query unchanged."""

    query: Query
    shields: bool
    """Whether an NXDOMAIN must become NODATA: the table has the name for other types, or a name below it."""
    claim: Answers | None = None
    """The row that answers if the name leads here."""


class Drop(NamedTuple):
    """Send no reply: it could only do harm."""

    fault: Fault


Outcome = Answer | Refuse | Forward | Drop


def decide(
    message: bytes,
    table: HostTable,
    *,
    stream: bool,
    keepalive: float | None = None,
    probe_row: Records = probe.ROW,
) -> Outcome:
    """What to do with a message from a client, over UDP or, with `stream`, over TCP.

    `keepalive`: seconds that a connection may be idle, reported to a client that asks (RFC 7828 section 3.3.2).
    `probe_row`: the answer to a probe.
    """
    query = wire.scan_query(message)
    if isinstance(query, Fault):
        return _decide_fault(message, query)
    if query.type in _TRANSFERS or query.klass != wire.CLASS_IN:
        return refuse(query, Rcode.REFUSED)
    row: Records | None
    if query.type == _TXT and probe.is_probe(query.name):
        row = probe_row
    else:
        found = table.find(query.name)
        if found is None or not found.by_type:
            return _new(Forward, (query, query.name in table.above, None))
        if found.claimed is not Claimed.NO:
            return _decide_claimed(query, found, table, stream=stream, keepalive=keepalive)
        row = found.by_type.get(query.type)
    if row is None:
        return Forward(query, shields=True)
    if query.edns and query.edns.version:
        return refuse(query, Rcode.BADVERS)
    return Answer(_format_answer(query, row, limit=reply_limit(query, stream=stream), keepalive=keepalive))


def answer_from(row: Answers, query: Query, *, stream: bool, keepalive: float | None = None) -> bytes:
    """The reply of a row to a query of a type that it has."""
    limit = reply_limit(query, stream=stream)
    return _format_answer(query, row.by_type[query.type], limit=limit, keepalive=keepalive)


def _decide_claimed(query: Query, row: Answers, table: HostTable, *, stream: bool, keepalive: float | None) -> Outcome:
    """What to do with a query for a name in whose row public DNS has a say."""
    above = query.name in table.above
    if query.type not in row.by_type:
        return Forward(query, above or row.claimed is not Claimed.ENFORCED)
    if query.edns and query.edns.version:
        return refuse(query, Rcode.BADVERS)
    forward = Forward(query, above, None if is_exempt(query) else row)
    if row.claimed is not Claimed.REPORTED:
        return forward
    return Answer(answer_from(row, query, stream=stream, keepalive=keepalive), forward)


def refuse(query: Query, rcode: Rcode, *, extended_error: int | None = None) -> Refuse:
    """An error reply: the question, and an OPT if the query had one (RFC 6891 section 7)."""
    opt = b""
    if query.edns:
        opt = records.format_opt(do=query.edns.do, rcode=rcode, extended_error=extended_error)
    head = _format_head(query.message, rcode=rcode, questions=1, additional=1 if opt else 0)
    return Refuse(head + query.question + opt, rcode)


def server_failure(message: bytes) -> bytes | None:
    """SERVFAIL for any octets; None if even that could do harm."""
    if len(message) < wire.HEADER or message[2] & 0x80:
        return None
    return _format_error(message, Rcode.SERVFAIL)


def reply_limit(query: Query, *, stream: bool) -> int:
    """The size limit of a reply to this query, in octets (RFC 6891 section 6.2.3, and OUR_UDP)."""
    if stream:
        return 0xFFFF
    if query.edns is None:
        return wire.MINIMUM_UDP
    return max(wire.MINIMUM_UDP, min(query.edns.udp_size, wire.OUR_UDP))


def _decide_fault(message: bytes, fault: Fault) -> Outcome:
    if fault in (Fault.SHORT, Fault.RESPONSE):
        # If servers answered responses, two of them would exchange messages for ever (CVE-2024-2169).
        return Drop(fault)
    rcode = Rcode.NOTIMP if fault is Fault.OPCODE else Rcode.FORMERR
    return Refuse(_format_error(message, rcode), rcode)


def _format_error(message: bytes, rcode: Rcode) -> bytes:
    """An error for octets that are not a valid query, with the question if there is one.

    CoreDNS answers its client FORMERR after any reply that does not echo the question.
    """
    end = wire.question_end(message)
    head = _format_head(message, rcode=rcode, questions=1 if end else 0)
    return head + message[wire.HEADER : end or wire.HEADER]


def _format_answer(query: Query, row: Records, *, limit: int, keepalive: float | None) -> bytes:
    opt = b""
    if query.edns:
        opt = records.format_opt(do=query.edns.do, keepalive=keepalive if query.edns.keepalive else None)
    body = query.question + row.octets + opt
    if wire.HEADER + len(body) > limit:
        return _format_truncated(query, opt)
    flags = records.reply_flags(_flags(query.message), rcode=Rcode.NOERROR, authoritative=True)
    counts = struct.pack("!HHHHH", flags, 1, row.answers, row.authorities, 1 if opt else 0)
    return query.message[:2] + counts + body


def _format_truncated(query: Query, opt: bytes) -> bytes:
    flags = records.reply_flags(_flags(query.message), rcode=Rcode.NOERROR, authoritative=True) | wire.TC
    return query.message[:2] + struct.pack("!HHHHH", flags, 1, 0, 0, 1 if opt else 0) + query.question + opt


def _format_head(message: bytes, *, rcode: int, questions: int, additional: int = 0) -> bytes:
    flags = records.reply_flags(_flags(message), rcode=rcode, authoritative=False)
    flags |= (message[2] & 0x78) << 8  # the opcode, copied (RFC 1035 section 4.1.1)
    return message[:2] + struct.pack("!HHHHH", flags, questions, 0, 0, additional)


def _flags(message: bytes) -> int:
    return message[2] << 8 | message[3]
