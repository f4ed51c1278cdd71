"""The table: which names we answer and with what. Nobody changes one; a change is a new table, swapped in whole.

The law: keys are lower-cased wire names. An exact name beats a wildcard, a longer wildcard a shorter one. Two names
with the same addresses share one answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from dnsproxy.dns import names, records
from dnsproxy.dns.names import Reach
from dnsproxy.dns.records import Heads, Records
from dnsproxy.dns.wire import CLASS_IN, Type

# An answer this small fits 512 octets behind the longest question and before an OPT, so its size needs no check.
_QUICK_LIMIT: Final = 512 - 12 - 259 - 11

NEGATIVE_TYPES: Final = (Type.HTTPS, Type.SVCB)
"""Types that would lead round our addresses if they came from upstream: always NODATA for a name of ours."""


class Answers(msgspec.Struct, frozen=True, eq=False, gc=False):
    """All that is known of one set of addresses.

    Out of the garbage collector's sight (gc=False), and so are dicts of them: it would walk through 100,000 names.
    """

    addresses: tuple[str, ...]
    by_type: Mapping[int, Records]
    quick: Mapping[bytes, tuple[Heads, bytes]]
    """The wire form of type and class to what the responder glues together without further thought."""


@dataclass(frozen=True, slots=True)
class Host:
    """One row of the table: a hostname in normal form and the addresses it is answered with."""

    hostname: str
    reach: Reach
    addresses: tuple[str, ...]


class Wildcard(NamedTuple):
    """The wildcards under one parent name; both kinds can stand side by side."""

    one_label: Answers | None
    any_labels: Answers | None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class HostTable:
    """Names to answers. writer.TableWriter builds it, and uses what is in it again when nobody has it any more."""

    exact: Mapping[bytes, Answers] = field(default_factory=dict)
    wildcards: Mapping[bytes, Wildcard] = field(default_factory=dict)
    above: Mapping[bytes, int] = field(default_factory=dict)
    """Ancestors of our names, and of how many: an NXDOMAIN for one would deny what is below it (RFC 8020)."""
    never: frozenset[bytes] = frozenset()
    """Names that no wildcard covers: those that were denied one by one."""

    def __len__(self) -> int:
        kinds = sum((one is not None) + (many is not None) for one, many in self.wildcards.values())
        return len(self.exact) + kinds

    def match_wildcard(self, name: bytes) -> Answers | None:
        """The answers of the longest wildcard that covers a lower-cased wire name."""
        wildcards = self.wildcards
        size = len(name)
        if not wildcards or size > names.MAXIMUM_NAME or name in self.never:
            return None
        position, first = 0, True
        while position < size and 0 < name[position] <= names.MAXIMUM_LABEL:
            position += 1 + name[position]
            found = wildcards.get(name[position:])
            if found is not None:
                answers = (found.one_label if first else None) or found.any_labels
                if answers is not None:
                    return answers
            first = False
        return None

    def find(self, name: bytes) -> Answers | None:
        """The answers for a lower-cased, well-formed wire name."""
        return self.exact.get(name) or self.match_wildcard(name)


def build_answers(addresses: tuple[str, ...], *, ttl: int) -> Answers:
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
    return Answers(addresses, by_type, quick)
