"""Registrable domains: from hostnames to their zones, one label below a public suffix.

The law: a zone never contains names of other owners (`example.org` for `app.example.org`, `shop.co.uk` for
`www.shop.co.uk`), so CoreDNS asks dnsproxy for no more names than needed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from dnsproxy.dns.names import BadName, is_within, parse_hostname
from dnsproxy.hostnames.guards import Guards, overreach, refusal
from dnsproxy.hostnames.public_suffixes import registrable_domain
from sidecar.kubernetes.structs.network import Ingress


def registrable_zones(hostnames: Iterable[str]) -> tuple[str, ...]:
    """The zones of hostnames, sorted. Names that dnsproxy never serves have none; a public suffix is its own zone."""
    zones = {zone for hostname in hostnames for zone in _zones(hostname)}
    # A host that is itself a suffix contains other zones; the outer zone is enough.
    return tuple(sorted(zone for zone in zones if not any(is_within(zone, other) for other in zones - {zone})))


def hosts_of(ingresses: Iterable[Ingress]) -> list[str]:
    """The hosts in the rules and TLS sections of Ingresses, without those that no object gets.

    Whoever may write an Ingress must not be able to make a public suffix, or `internal`, a zone of ours.
    """
    specs = [ingress.spec for ingress in ingresses if ingress.spec]
    rules = [rule.host for spec in specs for rule in spec.rules or () if rule.host]
    hosts = rules + [host for spec in specs for section in spec.tls or () for host in section.hosts or ()]
    return [host for host in hosts if not _is_denied_to_objects(host)]


def _is_denied_to_objects(hostname: str) -> bool:
    try:
        return overreach(parse_hostname(hostname), Guards()) is not None
    except BadName:
        return True


def _zones(hostname: str) -> list[str]:
    try:
        name = parse_hostname(hostname)
    except BadName:
        return []
    if refusal(name, Guards()):
        return []
    base = name.removeprefix("*.")
    return [registrable_domain(base) or base]
