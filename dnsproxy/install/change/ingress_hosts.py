"""Ingress hosts: the hosts of Ingresses that may become zones.

The law: whoever may write an Ingress must not be able to make a public suffix, or `internal`, a zone of ours, and a
zone has a host that is served: the names of a certificate may be elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.hostnames.guards import Guards, overreach
from dnsproxy.sources.ingress_hosts import TlsHosts, read_hosts
from sidecar.kubernetes.structs.network import Ingress, IngressSpec


def hosts_of(ingresses: Iterable[Ingress]) -> list[str]:
    """The hosts in the rules of Ingresses, then those in TLS sections that their rules serve.

    Those that no object gets are not among them.
    """
    specs = [ingress.spec for ingress in ingresses if ingress.spec]
    rules = [rule.host for spec in specs for rule in spec.rules or () if rule.host]
    hosts = rules + [host for spec in specs for host in _served_in_tls(spec)]
    return [host for host in hosts if not _is_denied_to_objects(host)]


def _served_in_tls(spec: IngressSpec) -> Iterator[str]:
    """As `dnsproxy serve` takes them by default."""
    hosts = (host for section in spec.tls or () for host in section.hosts or ())
    has_default_backend = spec.default_backend is not None
    yield from read_hosts(
        spec.rules or (), hosts, has_default_backend=has_default_backend, tls_only=True, tls_hosts=TlsHosts.RULES
    ).served


def _is_denied_to_objects(hostname: str) -> bool:
    try:
        return overreach(parse_hostname(hostname), Guards()) is not None
    except BadName:
        return True
