"""Messages and tables for tests: queries built octet by octet, replies read by two libraries, tables from text."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Any, Final

import dns.edns
import dns.flags
import dns.message
import dns.rdatatype
import dnslib

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Query, scan_query

RD: Final = 0x0100
TTL: Final = 5

A, NS, SOA, HINFO, MX, TXT, AAAA, SVCB, HTTPS, IXFR, AXFR, ANY = 1, 2, 6, 13, 15, 16, 28, 64, 65, 251, 252, 255


def wire_name(text: str) -> bytes:
    """The wire form of a name, letter case kept; the empty text is the root."""
    labels = [label.encode("latin-1") for label in text.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question(name: str | bytes, qtype: int = A, klass: int = 1) -> bytes:
    return (wire_name(name) if isinstance(name, str) else name) + struct.pack("!HH", qtype, klass)


def option(code: int, data: bytes = b"") -> bytes:
    return struct.pack("!HH", code, len(data)) + data


def opt_record(
    size: int = 1232, *, version: int = 0, flags: int = 0, options: bytes = b"", owner: bytes = b"\0", rcode: int = 0
) -> bytes:
    return owner + struct.pack("!HHBBHH", 41, size, rcode, version, flags, len(options)) + options


def record(rtype: int, data: bytes, *, owner: bytes = b"\xc0\x0c", klass: int = 1, ttl: int = 60) -> bytes:
    return owner + struct.pack("!HHIH", rtype, klass, ttl, len(data)) + data


def tsig_record() -> bytes:
    """A TSIG record (RFC 8945) with an unknown key."""
    data = wire_name("hmac-sha256") + bytes(6) + struct.pack("!HH", 300, 32) + bytes(32) + struct.pack("!HHH", 0, 0, 0)
    return record(250, data, owner=wire_name("key.example.org"), klass=255, ttl=0)


def header(flags: int = RD, counts: tuple[int, int, int, int] = (1, 0, 0, 0), *, ident: int = 0x1234) -> bytes:
    return struct.pack("!HHHHHH", ident, flags, *counts)


def query(
    name: str | bytes,
    qtype: int = A,
    *,
    klass: int = 1,
    flags: int = RD,
    ident: int = 0x1234,
    additional: tuple[bytes, ...] = (),
) -> bytes:
    """A query with one question and true counts."""
    head = header(flags, (1, 0, 0, len(additional)), ident=ident)
    return head + question(name, qtype, klass) + b"".join(additional)


def scanned(message: bytes) -> Query:
    """The scan of a valid query."""
    found = scan_query(message)
    assert isinstance(found, Query), found
    return found


def reply_to(message: bytes, *, flags: int = 0x8180, records: bytes = b"", answers: int = 0) -> bytes:
    """A possible reply of an upstream to a query with exactly one question."""
    end = scanned(message).end
    return message[:2] + struct.pack("!HHHHH", flags, 1, answers, 0, 0) + message[12:end] + records


@dataclass(frozen=True)
class Opt:
    """An OPT record, as parsed by a library."""

    version: int
    size: int
    do: bool
    other_flags: int
    options: int


@dataclass(frozen=True)
class Reading:
    """A reply, as parsed by a library: only fields that must not depend on the library."""

    ident: int
    flags: int
    rcode: int
    question: tuple[tuple[bytes, int, int], ...]
    answers: frozenset[tuple[bytes, int, int, object]]
    authorities: tuple[tuple[bytes, int, int, object], ...]
    opt: Opt | None

    def has(self, flag: int) -> bool:
        return bool(self.flags & flag)


# The bits of the flags that are neither opcode nor rcode.
_FLAG_BITS: Final = 0x87F0


def read_dnspython(reply: bytes) -> Reading:
    """Read a reply with dnspython, which rejects octets after the message."""
    message = dns.message.from_wire(reply, one_rr_per_rrset=True)
    opt = None
    if message.edns >= 0:
        flags = int(message.ednsflags) & 0xFFFF
        opt = Opt(message.edns, message.payload, bool(flags & 0x8000), flags & 0x7FFF, len(message.options))
    return Reading(
        ident=message.id,
        flags=int(message.flags) & _FLAG_BITS,
        rcode=int(message.rcode()),
        question=tuple((row.name.to_wire() or b"", int(row.rdtype), int(row.rdclass)) for row in message.question),
        answers=frozenset(_read_rrset(row) for row in message.answer),
        authorities=tuple(_read_rrset(row) for row in message.authority),
        opt=opt,
    )


def _read_rrset(row: Any) -> tuple[bytes, int, int, object]:
    (data,) = row
    content: object
    if row.rdtype in (A, AAAA):
        content = ipaddress.ip_address(data.address)
    elif row.rdtype == SOA:
        content = (data.mname.to_wire(), data.rname.to_wire(), data.minimum)
    else:
        content = data.to_wire()
    return row.name.to_wire(), int(row.rdtype), row.ttl, content


def read_dnslib(reply: bytes) -> Reading:
    """Read a reply with dnslib, which supports no labels with octets above 127."""
    message = dnslib.DNSRecord.parse(reply)
    head = message.header
    opts = [row for row in message.ar if row.rtype == 41]
    opt = None
    if opts:
        ttl = opts[0].ttl
        opt = Opt(ttl >> 16 & 0xFF, opts[0].rclass, bool(ttl & 0x8000), ttl & 0x7FFF, len(opts[0].rdata))
    return Reading(
        ident=head.id,
        flags=head.bitmap & _FLAG_BITS,
        rcode=head.rcode | (opts[0].ttl >> 24 << 4 if opts else 0),
        question=tuple((_label_wire(row.qname), row.qtype, row.qclass) for row in message.questions),
        answers=frozenset(_read_dnslib_record(row) for row in message.rr),
        authorities=tuple(_read_dnslib_record(row) for row in message.auth),
        opt=opt,
    )


def _read_dnslib_record(row: Any) -> tuple[bytes, int, int, object]:
    content: object
    if row.rtype in (A, AAAA):
        content = ipaddress.ip_address(str(row.rdata))
    elif row.rtype == SOA:
        content = (_label_wire(row.rdata.mname), _label_wire(row.rdata.rname), row.rdata.times[-1])
    else:
        content = bytes(row.rdata.data)
    return _label_wire(row.rname), row.rtype, row.ttl, content


def _label_wire(label: Any) -> bytes:
    return b"".join(bytes([len(part)]) + part for part in label.label) + b"\0"


def read_both(reply: bytes) -> Reading:
    """The reply, if both libraries read the same."""
    reading = read_dnspython(reply)
    assert read_dnslib(reply) == reading
    return reading


def parse_host(line: str) -> Host:
    """A row as text: `NAME ADDRESS...`; `*.NAME` covers one label, `**.NAME` one or more."""
    hostname, *addresses = line.split()
    if hostname.startswith("**."):
        return Host(hostname.removeprefix("*"), Reach.ANY_LABELS, tuple(addresses))
    reach = Reach.ONE_LABEL if names.is_wildcard(hostname) else Reach.NAME
    return Host(hostname, reach, tuple(addresses))


def table_of(*lines: str, ttl: int = TTL, never: tuple[str, ...] = (), closed: tuple[str, ...] = ()) -> HostTable:
    writer = TableWriter(ttl=ttl, never=never)
    writer.close(closed)
    for line in lines:
        writer.put(parse_host(line))
    return writer.publish()


def addresses_of(table: HostTable, name: str) -> tuple[str, ...] | None:
    """The table's answer for a name; None for an unknown name."""
    found = table.find(wire_name(name).lower())
    return found.addresses if found else None


def extended_error(reply: bytes) -> int:
    """The extended DNS error (RFC 8914) at the end of the OPT of a reply; dnspython must be able to read it."""
    read_dnspython(reply)
    assert reply[-6:-2] == b"\0\x0f\0\x02"
    return int.from_bytes(reply[-2:], "big")
