"""Resource records and the heads of replies, built with struct: the octets after the question of our answers.

The law: the owner of a record is always the name of the question, as a pointer to it, so that names with the same
content share the same octets. The tests check the result with dnslib and dnspython; neither is used here (dnslib takes
25 times as long).
"""

from __future__ import annotations

import functools
import ipaddress
import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Rcode, Type

OWNER: Final = b"\xc0\x0c"  # a pointer to offset 12, the name of the question (RFC 1035 section 4.1.4)
_NEGATIVE_REFRESH = 3600
# Not `hostmaster` below the owner: with an owner of nearly 255 octets that would be too long for a name.
MAILBOX: Final = b"\x06nobody\x07invalid\0"

# Sizes that stub resolvers, forwarders and test tools offer in practice; others go through decide.decide.
_COMMON_UDP_SIZES = (
    512,
    1024,
    1200,
    1220,
    1232,
    1252,
    1280,
    1400,
    1410,
    1432,
    1452,
    1472,
    2048,
    4000,
    4096,
    8192,
    65535,
)


def format_record(rtype: int, ttl: int, data: bytes) -> bytes:
    """One record of class IN, owned by the name of the question (RFC 1035 section 4.1.3)."""
    return OWNER + struct.pack("!HHIH", rtype, wire.CLASS_IN, ttl, len(data)) + data


def format_addresses(addresses: Iterable[str], *, rtype: Type, ttl: int) -> tuple[int, bytes]:
    """The A or AAAA records of the addresses of that family: their count and octets."""
    version = 4 if rtype is Type.A else 6
    parsed = (ipaddress.ip_address(address) for address in addresses)
    records = [format_record(rtype, ttl, address.packed) for address in parsed if address.version == version]
    return len(records), b"".join(records)


def format_soa(ttl: int) -> bytes:
    """The SOA that makes an empty answer NODATA; a cache keeps it for `ttl` seconds (RFC 2308 section 3)."""
    times = struct.pack("!IIIII", 1, _NEGATIVE_REFRESH, _NEGATIVE_REFRESH, _NEGATIVE_REFRESH, ttl)
    return format_record(Type.SOA, ttl, OWNER + MAILBOX + times)


def format_any(ttl: int) -> bytes:
    """The small answer to ANY (RFC 8482 section 4.2)."""
    return format_record(Type.HINFO, ttl, b"\x07RFC8482\0")


def format_opt(
    *, do: bool, rcode: int = Rcode.NOERROR, extended_error: int | None = None, keepalive: float | None = None
) -> bytes:
    """Our OPT record (RFC 6891 section 6.1.2): version 0, DO copied, no option of the query echoed.

    `extended_error` adds an EDE option with that info-code and no text (RFC 8914 section 2), `keepalive` an
    edns-tcp-keepalive option with that many seconds (RFC 7828 section 3.1).
    """
    options = b"" if extended_error is None else struct.pack("!HHH", 15, 2, extended_error)
    if keepalive is not None:
        options += struct.pack("!HHH", 11, 2, min(round(keepalive * 10), 0xFFFF))
    flags = wire.DO if do else 0
    return b"\0" + struct.pack("!HHBBHH", Type.OPT, wire.OUR_UDP, rcode >> 4, 0, flags, len(options)) + options


def reply_flags(query_flags: int, *, rcode: int, authoritative: bool) -> int:
    """The flags of our reply: QR and RA set, RD and CD copied, Z and AD clear (RFC 1035 4.1.1, RFC 4035 3.2)."""
    copied = query_flags & (wire.RD | wire.CD)
    return wire.QR | (wire.AA if authoritative else 0) | copied | wire.RA | (rcode & 0xF)


Heads = Mapping[bytes, bytes]
"""Octets 2 to 12 of a query (flags and counts), mapped to the same octets of its reply."""


@functools.cache
def quick_heads(answers: int, authorities: int) -> Heads:
    """The heads of replies to every plain query: opcode QUERY, one question, at most an OPT after it."""
    heads = {}
    for bits in range(16):
        flags = sum(flag for index, flag in enumerate((wire.RD, wire.CD, wire.AD, 0x0040)) if bits >> index & 1)
        reply = reply_flags(flags, rcode=Rcode.NOERROR, authoritative=True)
        for additional in (0, 1):
            query_head = struct.pack("!HHHHH", flags, 1, 0, 0, additional)
            heads[query_head] = struct.pack("!HHHHH", reply, 1, answers, authorities, additional)
    return heads


def quick_opts() -> dict[bytes, bytes]:
    """Each plain OPT record of a query (version 0, no options), mapped to the OPT of the reply."""
    return {
        b"\0" + struct.pack("!HHBBHH", Type.OPT, size, 0, 0, wire.DO if do else 0, 0): format_opt(do=do)
        for size in _COMMON_UDP_SIZES
        for do in (False, True)
    }


class Records(NamedTuple):
    """The sections after a question."""

    answers: int
    authorities: int
    octets: bytes
