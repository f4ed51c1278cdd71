"""The policy zone: a table as the records of a response policy zone (draft-vixie-dnsop-dns-rpz).

The law: pure; a resolver that matches names as RFC 4592 says gives the same addresses as the table, or none below a
wildcard of one label, which RPZ cannot say. A wildcard hides behind each node below it, so every such node repeats it.

A row that depends on public DNS is not in the zone, unless the resolvers know names alone: they ask for its record,
and the rules about addresses (address_rules.py) replace what leads here. Below a wildcard that is in the zone the name
has a rule to let it pass. That rule precedes those about addresses, which then replace nothing at BIND and PowerDNS,
and at Unbound nothing until the reply is in its cache: so the zone lets a name pass only where a wildcard would answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
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


class Triggers(Enum):
    """By what the zone's rules are found."""

    ADDRESSES = "addresses"
    """By the addresses of load balancers, and by names whose rows do not depend on public DNS."""
    NAMES = "names"
    """By the names of all rows, for resolvers that know no response-IP triggers."""


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
    triggers: Triggers = Triggers.ADDRESSES
    rules: Mapping[bytes, bytes] = field(default_factory=dict)
    """The rows of the rules about addresses, by node."""
    above_bars: Collection[bytes] = frozenset()
    """The ancestors of the table's `never` and `closed`: nodes of the zone that the table does not count."""

    def has(self, found: Answers) -> bool:
        """Whether a row of the table has its addresses in the zone."""
        return found.service not in self.table.unready and not self.asks(found)

    def asks(self, found: Answers) -> bool:
        """Whether resolvers ask for the record of a row's names."""
        return self.triggers is Triggers.ADDRESSES and found.claimed.is_conditional


@dataclass(frozen=True, slots=True)
class Inexpressible:
    """What a policy zone leaves out or changes."""

    one_label: int = 0
    """Wildcards of one label: left out, or widened."""
    too_long: int = 0
    """Names that are longer than 255 octets with the zone's name behind them."""
    triggers: int = 0
    """Names that RPZ would not read as names."""
    passed: int = 0
    """Names and wildcards that depend on public DNS, below a wildcard that does not: no address is replaced there."""
    balancer_hostnames: int = 0
    """Load balancers that are known by their hostname: resolvers replace only addresses that were found for it."""
    balancer_addresses: int = 0
    """Addresses and networks that lead here, and have no trigger (address_rules.py)."""


def is_trigger(node: bytes) -> bool:
    """Whether RPZ does not read this wire name, in lower case, as the name of a query."""
    return node.endswith(_TRIGGERS)


def policy_row(view: PolicyView, node: bytes) -> bytes | None:
    """The records at a node, a wire name in lower case, and at its `*.`; None if the zone has none there."""
    if is_trigger(node):
        return view.rules.get(node)
    if node == ROOT or not _exists(view, node):
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


def is_passed(view: PolicyView, node: bytes) -> bool:
    """Whether a row at this node, or the wildcard below it, depends on public DNS and has a rule to let it pass."""
    exact = view.table.exact.get(node)
    if exact is not None and _is_asked(view, exact) and _at(view, node) is Cover.BARRED:
        return True
    below = view.table.wildcards.get(node, ())
    return any(one is not None and _is_asked(view, one) for one in below) and _below(view, node) is Cover.BARRED


def _is_asked(view: PolicyView, found: Answers) -> bool:
    return view.asks(found) and found.service not in view.table.unready


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
        return _if_there(view, node, found)
    if node in table.never:
        return _barred_if_covered(view, node)
    return _cover(view, node)


def _below(view: PolicyView, node: bytes) -> Answers | Cover:
    """What a name below the node gets that has no closer wildcard."""
    wildcard = view.table.wildcards.get(node)
    own = _expressible(wildcard, view.wildcards)
    found = _if_there(view, node, own) if own is not None else _cover(view, node)
    one_label = wildcard.one_label if wildcard is not None else None
    if one_label is None or not isinstance(found, Answers):
        return found
    if found.addresses == one_label.addresses and view.has(one_label):
        return found
    # The names of one label have other addresses or none, and a wrong answer is worse than none.
    return Cover.BARRED


def _if_there(view: PolicyView, node: bytes, found: Answers) -> Answers | Cover:
    return found if view.has(found) else _barred_if_covered(view, node)


def _cover(view: PolicyView, node: bytes) -> Answers | Cover:
    """The closest wildcard above a node: what the table's match_wildcard finds, as RPZ can say it."""
    table, hidden = view.table, node in view.table.closed
    for parent in names.ancestors(node):
        found = _expressible(table.wildcards.get(parent), view.wildcards)
        if found is not None:
            if view.has(found):
                return Cover.BARRED if hidden else found
            # It is not in the zone, and still hides those above it.
            hidden = True
        hidden = hidden or parent in table.closed
    return Cover.NOTHING


def _barred_if_covered(view: PolicyView, node: bytes) -> Cover:
    return Cover.NOTHING if _cover(view, node) is Cover.NOTHING else Cover.BARRED


def _expressible(found: Wildcard | None, wildcards: Wildcards) -> Answers | None:
    if found is None:
        return None
    return found.any_labels or (found.one_label if wildcards is Wildcards.WIDEN else None)
