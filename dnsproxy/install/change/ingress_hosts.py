"""Ingress hosts: the hosts of Ingresses that may become zones.

The law: whoever may write an Ingress must not be able to make a public suffix, or `internal`, a zone of ours. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.hostnames.guards import Guards, overreach
from sidecar.kubernetes.structs.network import Ingress


def hosts_of(ingresses: Iterable[Ingress]) -> list[str]:
    """The hosts in the rules and TLS sections of Ingresses, without those that no object gets."""
    specs = [ingress.spec for ingress in ingresses if ingress.spec]
    rules = [rule.host for spec in specs for rule in spec.rules or () if rule.host]
    hosts = rules + [host for spec in specs for section in spec.tls or () for host in section.hosts or ()]
    return [host for host in hosts if not _is_denied_to_objects(host)]


def _is_denied_to_objects(hostname: str) -> bool:
    try:
        return overreach(parse_hostname(hostname), Guards()) is not None
    except BadName:
        return True
