"""Registrable domains: from hostnames to their zones, one label below a public suffix.

The law: a zone never contains names of other owners (`example.org` for `app.example.org`, `shop.co.uk` for
`www.shop.co.uk`), so CoreDNS asks dnsproxy for no more names than needed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from dnsproxy.dns.names import BadName, is_wildcard, parse_hostname
from dnsproxy.hostnames.guards import Guards, refusal
from dnsproxy.hostnames.public_suffixes import registrable_domain


def registrable_zones(hostnames: Iterable[str]) -> tuple[str, ...]:
    """The zones of hostnames, sorted. Names that dnsproxy never serves have none; a public suffix is its own zone."""
    return outermost(zone for hostname in hostnames for zone in _zones(hostname))


def outermost(zones: Iterable[str]) -> tuple[str, ...]:
    """The zones in normal form that are inside no other one, sorted.

    A host that is itself a suffix contains other zones; the outer zone is enough.
    """
    known = set(zones)
    return tuple(sorted(zone for zone in known if not any(above in known for above in _above(zone))))


def zone_of(hostname: str) -> str:
    """The zone of a hostname in normal form."""
    base = hostname.removeprefix("*.")
    return registrable_domain(base) or base


def covered_domain(hostname: str) -> str:
    """The registrable domain that a wildcard in normal form covers as a whole; empty if there is none."""
    if not is_wildcard(hostname):
        return ""
    base = hostname.removeprefix("*.")
    return base if registrable_domain(base) == base else ""


def _above(zone: str) -> Iterable[str]:
    while zone := zone.partition(".")[2]:
        yield zone


def _zones(hostname: str) -> list[str]:
    try:
        name = parse_hostname(hostname)
    except BadName:
        return []
    return [] if refusal(name, Guards()) else [zone_of(name)]
