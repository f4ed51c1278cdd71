"""Matching: the names that a VirtualService and the servers of its Gateways serve together.

The law: the result is that of comparing each host with each, which is never done: 1,000 hosts at 32 Gateways with 1,000
hosts each would block the loop for seconds. A hostname is looked up with the wildcards above it, and those below a
wildcard are found in a sorted list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.wildcards import wider
from dnsproxy.sources.istio.hosts import EVERY_HOST, NameSet, ServerHosts


class Match(NamedTuple):
    """Names that are served."""

    served: dict[str, int]
    """Each with the number of the first Gateway that has it."""
    matched: frozenset[str]
    """The hosts of the VirtualService of which a name is served."""


def match_hosts(
    wanted: Iterable[str], gateways: Sequence[ServerHosts], *, namespace: str, takes_all: bool = False
) -> Match:
    """What hosts in normal form of a VirtualService match; `takes_all`: it has the host `*` too."""
    own = dict.fromkeys(wanted)
    sets = [(number, some) for number, one in enumerate(gateways) for some in one.names_for(namespace)]
    every = [number for number, one in enumerate(gateways) if one.have_every_name_for(namespace)]
    found = {name: [(name, number) for number in (*_covering(name, sets), *every[:1])] for name in own}
    for name in filter(is_wildcard, own):
        found[name] += _below(name, own, sets)
    if takes_all:
        found[EVERY_HOST] = [(name, number) for number, some in sets for name in some.names]
    served: dict[str, int] = {}
    for pairs in found.values():
        for name, number in pairs:
            served[name] = min(number, served.get(name, number))
    return Match(served, frozenset(name for name, pairs in found.items() if pairs))


def _covering(name: str, sets: Iterable[tuple[int, NameSet]]) -> Iterator[int]:
    """The first Gateway with all of a hostname's names."""
    covering = (name, *wider(name))
    return islice((number for number, some in sets if not some.names.keys().isdisjoint(covering)), 1)


def _below(wildcard: str, own: Collection[str], sets: Iterable[tuple[int, NameSet]]) -> Iterator[tuple[str, int]]:
    """The hostnames of servers below a wildcard; only the first if a wider one of the same object has them all."""
    found = ((name, number) for number, some in sets for name in some.below(wildcard))
    return islice(found, 1) if any(one in own for one in wider(wildcard)) else found
