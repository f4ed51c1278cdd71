"""Resource records of a transferred zone, and rows: the records of one key of a zone.

The law: pure; an owner is written relative to the zone, whose name stands in the question at offset 12 of every message
(RFC 1035 section 4.1.4). So the same octets serve every message, and every secondary.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from dnsproxy.dns import names
from dnsproxy.dns.records import MAILBOX, OWNER, format_record
from dnsproxy.dns.wire import Type

ZONE: Final = OWNER
"""A pointer to the name of the question."""
REFRESH: Final = 60
"""Seconds between two looks of a secondary that no NOTIFY reached (RFC 1035 section 3.3.13)."""
RETRY: Final = 10
EXPIRE: Final = 4 * 7 * 86400
"""Seconds after which a secondary gives the zone up: RFC 1912 section 2.2 advises two to four weeks."""
_PRIMARY: Final = b"\x09localhost\0"
"""A policy zone needs no name server; BIND's manual has this one."""
_PASSTHRU: Final = b"\x0crpz-passthru\0"
_ADDRESS_TYPES: Final = {4: Type.A, 6: Type.AAAA}
_FIXED: Final = 10
"""Octets of type, class, TTL and length."""
_COUNT: Final = struct.Struct("!H")
MOST_RECORDS: Final = 0xFFFF
"""In one row."""
_POINTER: Final = 0xC0
_LONGEST_STRING: Final = 255


def format_zone_record(owner: bytes, rtype: int, ttl: int, data: bytes) -> bytes:
    """One record; `owner`: labels without the root, relative to the zone."""
    return owner + format_record(rtype, ttl, data)


def format_zone_soa(serial: int, *, ttl: int) -> bytes:
    """The SOA record at the apex. RFC 2308 section 4: `ttl` is how long a denial may be kept."""
    times = struct.pack("!IIIII", serial, REFRESH, RETRY, EXPIRE, ttl)
    return format_zone_record(b"", Type.SOA, ttl, _PRIMARY + MAILBOX + times)


def format_zone_ns(*, ttl: int) -> bytes:
    """The NS record at the apex, which every zone must have (RFC 1034 section 4.2.1)."""
    return format_zone_record(b"", Type.NS, ttl, _PRIMARY)


def format_passthru(owner: bytes, *, ttl: int) -> bytes:
    """The policy that leaves a name alone: `CNAME rpz-passthru.` (draft-vixie-dnsop-dns-rpz section 4.3)."""
    return format_zone_record(owner, Type.CNAME, ttl, _PASSTHRU)


@lru_cache(maxsize=1024)
def _address_tails(addresses: tuple[str, ...], ttl: int) -> tuple[bytes, ...]:
    parsed = map(ip_address, addresses)
    return tuple(format_record(_ADDRESS_TYPES[one.version], ttl, one.packed) for one in parsed)


def format_zone_addresses(owner: bytes, addresses: tuple[str, ...], *, ttl: int) -> list[bytes]:
    """The A and AAAA records of one owner."""
    return [owner + tail for tail in _address_tails(addresses, ttl)]


def format_texts(octets: bytes) -> bytes:
    """The data of a TXT record with these octets, in strings of up to 255 (RFC 1035 section 3.3.14)."""
    parts = [octets[start : start + _LONGEST_STRING] for start in range(0, len(octets), _LONGEST_STRING)]
    return b"".join(bytes([len(part)]) + part for part in parts)


def parse_texts(data: bytes) -> bytes:
    """The octets of the strings of a TXT record. Raises ValueError."""
    found, position = [], 0
    while position < len(data):
        end = position + 1 + data[position]
        if end > len(data):
            raise ValueError("a string of a TXT record is cut short")
        found.append(data[position + 1 : end])
        position = end
    return b"".join(found)


def join_row(records: Iterable[bytes]) -> bytes | None:
    """A row: the number of its records in two octets, and the records; None without any."""
    found = list(records)
    return _COUNT.pack(len(found)) + b"".join(found) if found else None


def row_count(row: bytes) -> int:
    """The number of records in a row."""
    count: int = _COUNT.unpack_from(row)[0]
    return count


def row_records(row: bytes) -> bytes:
    """The records of a row, joined."""
    return row[_COUNT.size :]


def split_row(row: bytes) -> Iterator[bytes]:
    """The records of a row, one by one."""
    position = _COUNT.size
    while position < len(row):
        begun = position
        while row[position] < _POINTER:
            position += 1 + row[position]
        position += len(ZONE) + _FIXED
        position += _COUNT.unpack_from(row, position - _COUNT.size)[0]
        yield row[begun:position]


def fits(owner: bytes, zone: bytes) -> bool:
    """Whether a relative owner is a name in this zone: no longer than 255 octets."""
    return len(owner) + len(zone) <= names.MAXIMUM_NAME
