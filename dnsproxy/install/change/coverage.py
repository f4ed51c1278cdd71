"""Coverage: the live hostnames for which the cluster's DNS does not ask dnsproxy, being in no zone of the stanza.

The law: a stanza for every name misses none. Names that dnsproxy never serves do not count. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dnsproxy.cluster_dns.requests import Fault
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.hostnames.registrable import registrable_zones


@dataclass(frozen=True, slots=True)
class Coverage:
    """Live hostnames compared with the zones of what is installed."""

    hosts: tuple[str, ...] = ()
    """Those in no zone, sorted."""
    zones: tuple[str, ...] = ()
    """The zones that an install would take for them."""
    source: str = ""
    """Where the hostnames come from; empty if they were not compared."""
    unknown: str = ""
    """Why they could not be compared; empty if they were, or need not be."""
    unread: Fault | None = None
    """The same, if a right is missing."""
    chosen: bool = False
    """Whether the hosts are outside by choice: a user chose the zones, because the method could serve every name, or an
    install would leave their zones out."""


def find_coverage(
    served: Sequence[str], hostnames: Iterable[str], source: str, *, within: Sequence[str] = (), chosen: bool = False
) -> Coverage:
    """Which of the hostnames are in none of the zones `served`; if `within` has any, only hostnames in these count."""
    counted = [host for host in hostnames if registrable_zones([host]) and (not within or _is_served(host, within))]
    hosts = sorted({host for host in counted if not _is_served(host, served)})
    return Coverage(tuple(hosts), registrable_zones(hosts), source, chosen=chosen)


def judge_coverage(coverage: Coverage, planned: Iterable[str]) -> Coverage:
    """The coverage without the hosts that an install with these zones would leave out too.

    If there are no others, they stay, and are outside by choice.
    """
    planned = tuple(planned)
    addable = tuple(zone for zone in coverage.zones if zone in planned)
    if not addable:
        return replace(coverage, chosen=coverage.chosen or bool(coverage.zones))
    return replace(coverage, hosts=tuple(host for host in coverage.hosts if _is_served(host, addable)), zones=addable)


def serves_every_name(served: Iterable[str]) -> bool:
    """Whether the cluster's DNS asks dnsproxy for every name."""
    return ROOT in served


def _is_served(host: str, zones: Iterable[str]) -> bool:
    return any(is_at_or_below(normalize_zone(host), zone if zone == ROOT else _dotted(zone)) for zone in zones)


def _dotted(zone: str) -> str:
    return zone.removesuffix(".") + "."
