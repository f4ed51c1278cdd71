"""The table: which names are answered, with which records.

The law: a table never changes; a new one replaces it whole. Keys are lower-case wire names. An exact name beats a
wildcard, a longer wildcard beats a shorter one. Names with the same addresses share one answer. A name whose Service is
not ready is forwarded, and still hides the wildcards above it, whose addresses may be another tenant's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dnsproxy.answers.answer_records import FORWARDED, Answers, Claimed
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.replace.balancers import Leads


@dataclass(frozen=True, slots=True)
class Host:
    """One row of the table: a hostname in normal form and its addresses."""

    hostname: str
    reach: Reach
    addresses: tuple[str, ...]
    barred: bool = False
    """Whether no wildcard covers it either, although it has no addresses."""
    service: str = ""
    """The Service with these addresses, `NAMESPACE/NAME`; empty if they are nobody's."""
    claimed: Claimed = Claimed.NO


class Wildcard(NamedTuple):
    """The wildcards under one parent name; there may be one of each kind."""

    one_label: Answers | None
    any_labels: Answers | None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class HostTable:
    """Names to answers. TableWriter builds it, and reuses its dicts when there is no reference to it any more."""

    exact: Mapping[bytes, Answers] = field(default_factory=dict)
    wildcards: Mapping[bytes, Wildcard] = field(default_factory=dict)
    above: Mapping[bytes, int] = field(default_factory=dict)
    """The ancestors of our names, and how many names are below each: an NXDOMAIN would deny those (RFC 8020)."""
    never: Mapping[bytes, bool] = field(default_factory=dict)
    """Names that no wildcard covers. True: --deny names it, and nothing in its replies is replaced either; False: it
    waits for its namespace (--hold)."""
    closed: frozenset[bytes] = frozenset()
    """Zones that no wildcard from above reaches into, the apex included: search domains. A wildcard inside one covers
    its names."""
    unready: frozenset[str] = frozenset()
    """The Services, `NAMESPACE/NAME`, whose names are forwarded: a set, so that it takes no time for any number of
    names."""
    forwarded: int = 0
    """How many names that are."""
    leads: Leads = field(default_factory=Leads)
    """The load balancers that lead here."""
    ttl: int = 5
    """Seconds that an answer may be kept."""
    conditional: int = 0
    """How many rows answer only if public DNS does not lead elsewhere."""

    def __len__(self) -> int:
        kinds = sum((one is not None) + (many is not None) for one, many in self.wildcards.values())
        return len(self.exact) + kinds - self.forwarded

    def match_wildcard(self, name: bytes) -> Answers | None:
        """The answers of the longest wildcard that covers a lower-case wire name."""
        wildcards = self.wildcards
        size = len(name)
        if not wildcards or size > names.MAXIMUM_NAME or name in self.never or name in self.closed:
            return None
        position, first = 0, True
        while position < size and 0 < name[position] <= names.MAXIMUM_LABEL:
            position += 1 + name[position]
            parent = name[position:]
            found = wildcards.get(parent)
            if found is not None:
                answers = (found.one_label if first else None) or found.any_labels
                if answers is not None:
                    return answers
            if parent in self.closed:
                return None
            first = False
        return None

    def find(self, name: bytes) -> Answers | None:
        """The answers for a lower-case, well-formed wire name; FORWARDED and None are forwarded."""
        found = self.exact.get(name) or self.match_wildcard(name)
        return FORWARDED if found is not None and found.service in self.unready else found

    def rule_of(self, name: bytes) -> str:
        """The row that answers a lower-case, well-formed wire name: `app.example.org`, `*.example.org`; empty if none.

        For showing: slower than find().
        """
        if name in self.exact:
            return names.format_wire(name).removesuffix(".")
        if self.match_wildcard(name) is not None:
            for depth, parent in enumerate(names.ancestors(name)):
                found = self.wildcards.get(parent)
                if found is not None and ((found.one_label and not depth) or found.any_labels):
                    return "*." + names.format_wire(parent).removesuffix(".")
        return ""
