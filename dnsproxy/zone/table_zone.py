"""The table zone: its name, the owners of its rows, and their texts in TXT records.

The law: pure; a hostname is the owner of its row wherever that fits, so that `dig` finds it. A text of any length is
one record set.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from dnsproxy.dns import names
from dnsproxy.dns.wire import Type
from dnsproxy.zone.zone_records import fits, format_texts, format_zone_record, join_row

LABEL: Final = b"\x0b_switchback"
"""The reserved label: the table zone is this label and the policy zone."""
APEX: Final = b""
"""The owner of the control record."""
ROW_TTL: Final = 5
"""Of the zone's records, which no resolver caches."""
_PART: Final = 16_000
"""Octets in one TXT record; a longer text takes several, each with `NUMBER/COUNT ` in front."""
_HASHED: Final = b"\x09_too-long"


def table_zone(zone: bytes) -> bytes:
    """The wire name of the table zone beside a policy zone. Raises ValueError if it is too long."""
    name = LABEL + zone
    if not fits(_hashed(""), name):
        raise ValueError("the zone's name is too long: the names in it have no room in front of it")
    return name


def owner_of(hostname: str, zone: bytes) -> bytes:
    """The relative owner of a hostname's row in the table zone `zone`.

    A name that does not fit in front of the zone's name has a hash for owner; readers go by the row's own hostname. So
    has one that could be such an owner, or it would take another name's place.
    """
    star = b"\x01*" if names.is_wildcard(hostname) else b""
    owner = star + names.to_wire(hostname)[:-1]
    return owner if fits(owner, zone) and not owner.endswith(_HASHED) else _hashed(hostname)


def _hashed(hostname: str) -> bytes:
    digest = blake2b(hostname.encode(), digest_size=20).hexdigest().encode()
    return bytes([len(digest)]) + digest + _HASHED


def text_records(owner: bytes, text: bytes, *, ttl: int) -> bytes:
    """The row of the TXT records with a text."""
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    if len(parts) > 1:
        parts = [b"%d/%d " % (number, len(parts)) + part for number, part in enumerate(parts, 1)]
    row = join_row(format_zone_record(owner, Type.TXT, ttl, format_texts(part)) for part in parts)
    return row or b""


def join_texts(parts: Sequence[bytes]) -> bytes:
    """The text of one owner's TXT records, in any order. Raises ValueError."""
    if len(parts) == 1:
        return parts[0]
    numbered: dict[int, bytes] = {}
    for part in parts:
        head, _, rest = part.partition(b" ")
        number, _, count = head.partition(b"/")
        if not number.isdigit() or count != b"%d" % len(parts):
            raise ValueError("its TXT records are not the parts of one text")
        numbered[int(number)] = rest
    if sorted(numbered) != list(range(1, len(parts) + 1)):
        raise ValueError("its TXT records are not the parts of one text")
    return b"".join(numbered[number] for number in sorted(numbered))
