"""The lines of a hosts file for the names of a publication.

The law: a line is an address and one name, because some readers limit the names or octets of a line (musl: 511 octets),
and the order depends on the names alone. A name that the file has already is excluded: the node's own entries, such as
that of its API server, win over names that any tenant could claim. Excluded names are counted and logged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum

from dnsproxy.admin.publication import Name
from dnsproxy.dns.names import Reach
from dnsproxy.publish.hosts.refused_addresses import is_refused
from dnsproxy.publish.hosts.rules import Rules


class Why(Enum):
    """Why a name inside the zones has no line; the value is a label of metrics."""

    WILDCARD = "wildcard"
    """A hosts file has no patterns (hosts(5))."""
    PROTECTED = "protected"
    """Nodes need the name for themselves, or the owner denies it."""
    ADDRESS = "address"
    """At least one of its addresses is refused; the name keeps the others."""
    TAKEN = "taken"
    """The name has a line outside our block."""
    LIMIT = "limit"
    """There are more names than the owner accepts."""


@dataclass(frozen=True, slots=True)
class InFile:
    """The names that a hosts file has, in normal form."""

    foreign: Set[str] = frozenset()
    """Outside our block."""
    published: Set[str] = frozenset()
    """In our block."""


@dataclass(frozen=True, slots=True)
class HostsLines:
    """The lines for a publication, and the hostnames that lack lines, by reason."""

    lines: tuple[str, ...] = ()
    names: int = 0
    """How many names the lines have."""
    excluded: Mapping[Why, tuple[str, ...]] = field(default_factory=dict)


def make_lines(names: Iterable[Name], *, rules: Rules, there: InFile) -> HostsLines:
    """The lines of the names that the rules take, in the order of the names."""
    inside = [name for name in names if rules.is_inside(name.hostname.removeprefix("*."))]
    refused = {one for one in {address for name in inside for address in name.addresses} if is_refused(one)}
    excluded: dict[Why, list[str]] = {why: [] for why in Why}
    free = []
    for name in inside:
        if why := _why_not(name, rules, there):
            excluded[why].append(name.hostname)
            continue
        if not refused.isdisjoint(name.addresses):
            excluded[Why.ADDRESS].append(name.hostname)
        if not refused.issuperset(name.addresses):
            free.append(name)
    written = _fitting(free, rules, there.published)
    if len(written) < len(free):
        excluded[Why.LIMIT] = sorted({name.hostname for name in free} - {name.hostname for name in written})
    lines = tuple(f"{one} {name.hostname}" for name in written for one in name.addresses if one not in refused)
    # A wildcard of both reaches counts once.
    return HostsLines(lines, len(written), {why: tuple(dict.fromkeys(some)) for why, some in excluded.items()})


def names_outside(text: bytes) -> frozenset[str]:
    """The names of a text of a hosts file, in normal form."""
    rows = (line.partition(b"#")[0].split()[1:] for line in text.splitlines())
    return frozenset(word.decode("ascii", "replace").lower().removesuffix(".") for row in rows for word in row)


def names_in_block(lines: Iterable[bytes]) -> frozenset[str]:
    """The names that the lines of our block have."""
    return frozenset(line.split()[1].decode("ascii", "replace") for line in lines if len(line.split()) > 1)


def _why_not(name: Name, rules: Rules, there: InFile) -> Why | None:
    if name.reach is not Reach.NAME:
        return Why.WILDCARD
    if rules.is_refused(name.hostname):
        return Why.PROTECTED
    return Why.TAKEN if name.hostname in there.foreign else None


def _fitting(names: Sequence[Name], rules: Rules, published: Set[str]) -> Sequence[Name]:
    """At most `rules.most` names, in their order: named by the owner first, then published, then new.

    So a flood of new names displaces no other.
    """
    if len(names) <= rules.most:
        return names
    order = sorted(
        range(len(names)),
        key=lambda one: (not rules.is_named(names[one].hostname), names[one].hostname not in published),
    )
    return [names[one] for one in sorted(order[: rules.most])]
