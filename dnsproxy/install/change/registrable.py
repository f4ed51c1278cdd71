"""Registrable domains: from hostnames to the zones that hold them, one label below a public suffix.

The law: a zone never holds names of other owners (`example.org` for `app.example.org`, `shop.co.uk` for
`www.shop.co.uk`), so what CoreDNS asks dnsproxy for is no more than needed. The list is that of publicsuffix.org as the
package publicsuffixlist brings it; nothing is fetched. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from dnsproxy.dns.names import BadName, is_within, parse_hostname
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from sidecar.kubernetes.structs.network import Ingress


def registrable_zones(hostnames: Iterable[str]) -> tuple[str, ...]:
    """The zones of hostnames, sorted. What dnsproxy never takes gives none; a public suffix stands for itself."""
    zones = {zone for hostname in hostnames for zone in _zones(hostname)}
    # A host that is itself a suffix lies around others; CoreDNS would take both, and one is enough.
    return tuple(sorted(zone for zone in zones if not any(is_within(zone, other) for other in zones - {zone})))


def hosts_of(ingresses: Iterable[Ingress]) -> list[str]:
    """The hosts that rules and TLS sections name."""
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
