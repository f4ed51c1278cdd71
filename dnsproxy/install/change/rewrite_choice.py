"""The choice of rewrites: from the names of dnsproxy's table and the lines that stand to those that an install writes.

The law: a name leaves the lines only on the word of a source that is complete, and a line that stands keeps its place
when there are too many. A wildcard is written together with every narrower name that it would cover otherwise, or not
at all. The result depends on the names and the standing lines alone, and choosing again gives the same. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.rewrite_lines import MOST, Rewrite, hostnames_of
from dnsproxy.dns.names import Reach, is_within

Refuse = Callable[[Rewrite], str]
"""Why a name must not be rewritten; empty if it may."""
_Key = tuple[str, Reach]

ADVICE: Final = (
    "a wildcard host is one line for all its names; without a limit, put the import before the forward, or give the "
    "owner of the DNS the stanza of --method print"
)
"""What to do about names that are left out."""


@dataclass(frozen=True, slots=True)
class LiveRewrites:
    """What the pods of dnsproxy say about their tables."""

    names: tuple[Rewrite, ...] = ()
    """Those with a ready Service, the oldest first."""
    exempt: tuple[Rewrite, ...] = ()
    """Those that keep their own answers, although a wildcard covers them."""
    plain: int = 0
    """How many names are answered with plain addresses."""
    left_out: int = 0
    """How many more names there are."""
    answered: int = 0
    """Pods that answered."""
    doubt: str = ""
    """Why names may be missing; empty if a name that is not among them is not wanted."""
    absent: frozenset[str] = frozenset()
    """Services, `NAMESPACE/NAME`, for which the cluster's DNS has no address."""


@dataclass(frozen=True, slots=True)
class ChosenRewrites:
    """The rewrites to write."""

    rewrites: tuple[Rewrite, ...]
    """At most MOST, exempt names included, in the order in which they were chosen."""
    kept: tuple[str, ...] = ()
    """Standing names that the source does not name."""
    beyond: tuple[str, ...] = ()
    """Names beyond MOST."""
    refused: tuple[tuple[str, str], ...] = ()
    """Names that must not be rewritten, each with the reason."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are rewritten to a Service, sorted."""
        return hostnames_of(self.rewrites)


def choose_rewrites(
    live: LiveRewrites,
    standing: Iterable[Rewrite],
    *,
    refuse: Refuse = lambda _: "",
    zones: Iterable[str] = (),
    foreign: Iterable[str] = (),
    most: int = MOST,
) -> ChosenRewrites:
    """The rewrites for the live names and the standing lines.

    `zones`: only names in one of these count, without any all do. `foreign`: zones of others, whose names keep their
    answers, although a wildcard covers them.
    """
    standing, zones = tuple(standing), tuple(zones)
    there = {one.key: one for one in standing if one.service}
    named = {one.key: one for one in live.names}
    kept = {key: one for key, one in there.items() if key not in named and _is_kept(one, live)}
    wanted = [one for one in [*named.values(), *kept.values()] if not zones or _is_in(one.base, zones)]
    refused = {one.key: why for one in wanted if (why := refuse(one))}
    rows = [one for one in wanted if one.key not in refused]
    before = [one.key for one in standing if not one.service] if live.doubt else []
    keys = [*refused, *(one.key for one in live.exempt), *before, *_below(foreign)]
    served = {one.key for one in rows}
    exempt = [Rewrite(*key) for key in dict.fromkeys(keys) if key not in served]
    chosen, beyond = _fit(sorted(rows, key=lambda one: _turn(one, there)), exempt, most)
    return ChosenRewrites(
        tuple(chosen),
        tuple(one.hostname for key, one in kept.items() if key in served),
        tuple(beyond),
        tuple((hostname, why) for (hostname, _), why in refused.items()),
    )


def covers(wildcard: Rewrite, key: _Key) -> bool:
    """Whether names of a key are below a wildcard too, in whose turn they would come without lines of their own."""
    hostname, reach = key
    base = hostname.removeprefix("*.")
    if wildcard.reach is Reach.ONE_LABEL:
        return reach is Reach.NAME and base.partition(".")[2] == wildcard.base
    if wildcard.reach is Reach.NAME:
        return False
    return base.endswith(f".{wildcard.base}") or (reach is Reach.ONE_LABEL and base == wildcard.base)


def _is_kept(rewrite: Rewrite, live: LiveRewrites) -> bool:
    """Whether a standing line stays that no pod names: not a wildcard whose exempt names are left out."""
    return bool(live.doubt) and (rewrite.reach is Reach.NAME or not live.left_out)


def _turn(rewrite: Rewrite, there: dict[_Key, Rewrite]) -> tuple[bool, bool]:
    """Standing lines come first, wildcards first among them: a new exempt name must not cost its wildcard the place."""
    stands = rewrite.key in there
    return not stands, stands and rewrite.reach is Reach.NAME


def _fit(rows: list[Rewrite], exempt: list[Rewrite], most: int) -> tuple[list[Rewrite], list[str]]:
    """As many rows as fit, each wildcard with all that it covers; and the hostnames of the others."""
    chosen: dict[_Key, Rewrite] = {}
    beyond: list[Rewrite] = []
    narrower = _by_suffix([*rows, *exempt])
    for row in rows:
        group = {row.key: row}
        if row.reach is not Reach.NAME and len(chosen) < most:
            group |= {one.key: one for one in narrower[row.base] if covers(row, one.key)}
        if len(chosen.keys() | group.keys()) <= most:
            chosen |= group
        else:
            beyond.append(row)
    return list(chosen.values()), [one.hostname for one in beyond if one.key not in chosen]


def _by_suffix(rewrites: Iterable[Rewrite]) -> dict[str, list[Rewrite]]:
    """The rewrites at and below each domain."""
    found: dict[str, list[Rewrite]] = {}
    for one in rewrites:
        rest = one.base
        while rest:
            found.setdefault(rest, []).append(one)
            rest = rest.partition(".")[2]
    return found


def _below(zones: Iterable[str]) -> Iterator[_Key]:
    for zone in zones:
        yield zone, Reach.NAME
        yield f"*.{zone}", Reach.ANY_LABELS


def _is_in(base: str, zones: Iterable[str]) -> bool:
    return any(is_within(base, zone) for zone in zones)
