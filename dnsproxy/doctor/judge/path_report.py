"""The path told: through what the asked host's connections go, from object to address, as one line each.

The law: only what was seen; an address is said with whose it is. For one host alone, for the paths of all would be a
list of the cluster. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Host, Service
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.paths import Path, Paths, normalize_address
from dnsproxy.doctor.judge.providers import UNKNOWN, provider_of

_MOST: Final = 5


def report_path(facts: Facts, paths: Paths) -> tuple[str, ...]:
    """The lines; none where no host was asked about."""
    if not facts.hostname:
        return ()
    lines = [line for path in paths.paths for line in _of_path(path, facts)]
    lines += [f"{_object(host, facts)}, whose Service was not found" for host in paths.unmatched[:_MOST]]
    return (*lines, *_of_names(facts, paths))


def _of_path(path: Path, facts: Facts) -> Iterator[str]:
    service = path.service
    for host in path.hosts[:_MOST]:
        yield f"{_object(host, facts)}, comes in through Service {service.key}"
    provider = provider_of(service, facts.provider)
    by = "" if provider is UNKNOWN else f" of {provider.name}"
    at = ", ".join(service.cluster_ips) or "no ClusterIP"
    yield f"Service {service.key}: {service.type}{by}, ClusterIP {at}, load balancer {_points(service)}"


def _object(host: Host, facts: Facts) -> str:
    controller = next((one.controller for one in facts.classes if one.name == host.ingress_class), "")
    by = f" ({controller})" if controller else ""
    named = "" if host.hostname == facts.hostname else f" for {host.hostname}"
    return f"{host.origin}{named}, class {host.ingress_class or 'none'}{by}"


def _points(service: Service) -> str:
    texts = [
        " and ".join(filter(None, (point.ip, point.hostname))) + (f" (ipMode {point.ip_mode})" if point.ip_mode else "")
        for point in service.points
    ]
    return ", ".join(filter(None, (*texts, *service.external_ips))) or "none in its status"


def _of_names(facts: Facts, paths: Paths) -> Iterator[str]:
    owners = _owners(facts, paths)
    for lookup in facts.lookups:
        if lookup.hostname == facts.hostname:
            who = "the cluster's DNS" if lookup.server == "cluster" else "public DNS"
            yield f"{who} at {lookup.endpoint} answers {_answer(lookup, owners)}"
    dns = facts.dns
    if dns is not None and dns.node_local:
        does = "passes public names on to" if dns.node_local_passes_on else "does not ask"
        yield f"between them stands {dns.node_local}, which {does} the cluster's DNS"
    elif dns is not None and dns.service:
        yield f"pods ask Service {dns.service} at {', '.join(dns.addresses) or 'no address'}, with no cache in between"


def _answer(lookup: Lookup, owners: dict[str, str]) -> str:
    if lookup.fault:
        return f"nothing ({lookup.fault})"
    named = [
        f"{address} ({owners[normalize_address(address)]})" if normalize_address(address) in owners else address
        for address in lookup.addresses
    ]
    by = f", by way of {', '.join(lookup.aliases)}" if lookup.aliases else ""
    return (", ".join(named) or "that there is no address") + by


def _owners(facts: Facts, paths: Paths) -> dict[str, str]:
    """Whose an address is."""
    found: dict[str, str] = {}
    services: Sequence[Service] = [path.service for path in paths.paths]
    for service in services:
        found |= {normalize_address(ip): "the controller" for ip in service.cluster_ips}
        found |= {normalize_address(ip): "the load balancer" for ip in (*service.external_ips, *_ips(service))}
    if facts.relay is not None:
        found |= {normalize_address(ip): "the relay" for ip in facts.relay.addresses}
    return found


def _ips(service: Service) -> tuple[str, ...]:
    return tuple(point.ip for point in service.points if point.ip)
