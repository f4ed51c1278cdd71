"""The policy zone: a table as the records of a response policy zone (draft-vixie-dnsop-dns-rpz).

The law: pure; a resolver that matches names as RFC 4592 says gives the same addresses as the table, or none below a
wildcard of one label, which RPZ cannot say. A wildcard hides behind each node below it, so every such node repeats it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.table import HostTable, Wildcard
from dnsproxy.dns import names
from dnsproxy.zone.zone_records import fits, format_passthru, format_zone_addresses, join_row

ROOT: Final = b"\0"
_STAR: Final = b"\x01*"
_TRIGGERS: Final = (b"\x06rpz-ip\0", b"\x08rpz-nsip\0", b"\x0drpz-client-ip\0", b"\x0brpz-nsdname\0")
"""The ends of owners that RPZ reads as an address or a name server (draft section 4):
`8.0.0.0.10.rpz-client-ip` is each query of 10.0.0.0/8."""


class Wildcards(Enum):
    """What becomes of a wildcard of one label."""

    EXCLUDE = "exclude"
    WIDEN = "widen"
    """It covers any number of labels."""


class Cover(Enum):
    """How a name below no wildcard of its own is covered, where it is not by addresses."""

    NOTHING = "no wildcard covers it"
    BARRED = "a wildcard would cover it in RPZ, and the table forwards it"


@dataclass(frozen=True, slots=True)
class PolicyView:
    """What the policy zone shows: a table, and what the table does not tell."""

    table: HostTable
    zone: bytes
    """The wire name of the policy zone."""
    ttl: int
    wildcards: Wildcards = Wildcards.EXCLUDE
    above_bars: Collection[bytes] = frozenset()
    """The ancestors of the table's `never` and `closed`: nodes of the zone that the table does not count."""


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """What a policy zone leaves out or changes."""

    one_label: int = 0
    """Wildcards of one label: left out, or widened."""
    too_long: int = 0
    """Names that are longer than 255 octets with the zone's name behind them."""
    triggers: int = 0
    """Names that RPZ would not read as names."""


def is_trigger(node: bytes) -> bool:
    """Whether RPZ does not read this wire name, in lower case, as the name of a query."""
    return node.endswith(_TRIGGERS)


def policy_row(view: PolicyView, node: bytes) -> bytes | None:
    """The records at a node, a wire name in lower case, and at its `*.`; None if the zone has none there."""
    if node == ROOT or is_trigger(node) or not _exists(view, node):
        return None
    ttl = view.ttl
    records: list[bytes] = []
    for owner, found in ((node[:-1], _at(view, node)), (_STAR + node[:-1], _below(view, node))):
        if not fits(owner, view.zone):
            continue
        if isinstance(found, Answers):
            records += format_zone_addresses(owner, found.addresses, ttl=ttl)
        elif found is Cover.BARRED:
            records.append(format_passthru(owner, ttl=ttl))
    return join_row(records)


def _exists(view: PolicyView, node: bytes) -> bool:
    table = view.table
    return (
        node in table.exact
        or node in table.wildcards
        or node in table.above
        or node in table.never
        or node in table.closed
        or node in view.above_bars
    )


def _at(view: PolicyView, node: bytes) -> Answers | Cover:
    table = view.table
    found = table.exact.get(node)
    if found is None and node not in table.never and node not in table.closed:
        # A wildcard of one label can be said of a node that is there anyway.
        over = table.wildcards.get(node[1 + node[0] :])
        found = over.one_label if over is not None else None
    if found is not None:
        return _if_ready(view, node, found)
    if node in table.never:
        return _barred_if_covered(view, node)
    return _cover(view, node)


def _below(view: PolicyView, node: bytes) -> Answers | Cover:
    """What a name below the node gets that has no closer wildcard."""
    wildcard = view.table.wildcards.get(node)
    own = _expressible(wildcard, view.wildcards)
    found = _if_ready(view, node, own) if own is not None else _cover(view, node)
    one_label = wildcard.one_label if wildcard is not None else None
    if one_label is None or not isinstance(found, Answers):
        return found
    if found.addresses == one_label.addresses and one_label.service not in view.table.unready:
        return found
    # The names of one label have other addresses or are forwarded, and a wrong answer is worse than none.
    return Cover.BARRED


def _if_ready(view: PolicyView, node: bytes, found: Answers) -> Answers | Cover:
    return found if found.service not in view.table.unready else _barred_if_covered(view, node)


def _cover(view: PolicyView, node: bytes) -> Answers | Cover:
    """The closest wildcard above a node: what the table's match_wildcard finds, as RPZ can say it."""
    table, closed = view.table, node in view.table.closed
    for parent in names.ancestors(node):
        found = _expressible(table.wildcards.get(parent), view.wildcards)
        if found is not None:
            return Cover.BARRED if closed or found.service in table.unready else found
        closed = closed or parent in table.closed
    return Cover.NOTHING


def _barred_if_covered(view: PolicyView, node: bytes) -> Cover:
    return Cover.NOTHING if _cover(view, node) is Cover.NOTHING else Cover.BARRED


def _expressible(found: Wildcard | None, wildcards: Wildcards) -> Answers | None:
    if found is None:
        return None
    return found.any_labels or (found.one_label if wildcards is Wildcards.WIDEN else None)


def inexpressible(wildcards: Mapping[bytes, Wildcard], *, too_long: int, triggers: int) -> Inexpressible:
    """What the policy zone cannot say about a table with these wildcards."""
    return Inexpressible(sum(one.one_label is not None for one in wildcards.values()), too_long, triggers)
