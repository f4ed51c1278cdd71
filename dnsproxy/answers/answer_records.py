"""The records of an answer, with their TTL: addresses, NODATA with an SOA, and the HINFO of ANY (RFC 8482).

The law: one TTL, that of --ttl, holds for every record of an answer and as the time that a cache keeps NODATA (RFC 2308
section 3). The records are built once for a set of addresses, never for a query. Tested in test_table.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec

from dnsproxy.dns import records
from dnsproxy.dns.records import Heads, Records
from dnsproxy.dns.wire import CLASS_IN, Type

# An answer this small fits 512 octets with the longest question and an OPT, so its size needs no check.
_QUICK_LIMIT: Final = 512 - 12 - 259 - 11


NEGATIVE_TYPES: Final = (Type.HTTPS, Type.SVCB)
"""Types whose records from an upstream would bypass our addresses: always NODATA for a name of the table."""


class Claimed(IntEnum):
    """Whether public DNS has a say in a row of the table (`--ownership`)."""

    NO = 0
    """The row answers: the operator set the name, or ownership is off."""
    REPORTED = 1
    """The row answers; a public record that leads elsewhere is reported."""
    VERIFIED = 2
    """The row answers if the public record leads here, or if the name has no record."""
    ENFORCED = 3
    """The row answers if the public record leads here."""

    @property
    def is_conditional(self) -> bool:
        """Whether the row answers only if public DNS does not lead elsewhere."""
        return self >= Claimed.VERIFIED


class Answers(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The answers for one set of addresses, by query type.

    The garbage collector does not track them (gc=False), nor dicts of them: it would visit 100,000 names each time.
    """

    addresses: tuple[str, ...]
    by_type: Mapping[int, Records]
    quick: Mapping[bytes, tuple[Heads, bytes]]
    """The wire form of type and class to the parts of the reply of a quick answer."""
    service: str = ""
    """The Service with these addresses, `NAMESPACE/NAME`; empty if they are nobody's."""
    claimed: Claimed = Claimed.NO


FORWARDED: Final = Answers((), {}, {})
"""For a name of the table that is forwarded as if it were not there."""


def build_answers(addresses: tuple[str, ...], *, ttl: int, service: str = "", claimed: Claimed = Claimed.NO) -> Answers:
    """The replies for one set of addresses (IPv4 and IPv6 texts), TTL in seconds."""
    nodata = Records(0, 1, records.format_soa(ttl))
    by_type: dict[int, Records] = dict.fromkeys(NEGATIVE_TYPES, nodata)
    by_type[Type.ANY] = Records(1, 0, records.format_any(ttl))
    for rtype in (Type.A, Type.AAAA):
        count, octets = records.format_addresses(addresses, rtype=rtype, ttl=ttl)
        by_type[rtype] = Records(count, 0, octets) if count else nodata
    quick = {
        rtype.to_bytes(2, "big") + CLASS_IN.to_bytes(2, "big"): (
            records.quick_heads(row.answers, row.authorities),
            row.octets,
        )
        for rtype, row in by_type.items()
        if len(row.octets) <= _QUICK_LIMIT
    }
    return Answers(addresses, by_type, quick, service, claimed)
