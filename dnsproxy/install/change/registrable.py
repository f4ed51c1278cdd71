"""Registrable domains: from hostnames to their zones, one label below a public suffix.

The law: a zone never contains names of other owners (`example.org` for `app.example.org`, `shop.co.uk` for
`www.shop.co.uk`), so CoreDNS asks dnsproxy for no more names than needed. The list of suffixes is that of
publicsuffix.org in the package publicsuffixlist; nothing is fetched. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from dnsproxy.dns.names import BadName, is_within, parse_hostname
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from sidecar.kubernetes.structs.network import Ingress


def registrable_zones(hostnames: Iterable[str]) -> tuple[str, ...]:
    """The zones of hostnames, sorted. Names that dnsproxy never serves have none; a public suffix is its own zone."""
    zones = {zone for hostname in hostnames for zone in _zones(hostname)}
    # A host that is itself a suffix contains other zones; the outer zone is enough.
    return tuple(sorted(zone for zone in zones if not any(is_within(zone, other) for other in zones - {zone})))


def hosts_of(ingresses: Iterable[Ingress]) -> list[str]:
    """The hosts in the rules and TLS sections of Ingresses."""
    specs = [ingress.spec for ingress in ingresses if ingress.spec]
    rules = [rule.host for spec in specs for rule in spec.rules or () if rule.host]
    return rules + [host for spec in specs for section in spec.tls or () for host in section.hosts or ()]


def _zones(hostname: str) -> list[str]:
    try:
        name = parse_hostname(hostname)
    except BadName:
        return []
    if refusal(name, Guards()) or overreach(name, Guards()):
        return []
    base = name.removeprefix("*.")
    return [_suffixes().privatesuffix(base) or base]


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
