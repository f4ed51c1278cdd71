"""The path report: the stations of the requested host's connections, from object to address, one line each.

The law: only what was seen; the owner of an address is shown beside it. Only for one host: for all hosts it would list
the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Host, Service
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.header_mode import describe, is_understood
from dnsproxy.doctor.judge.paths import Path, Paths, normalize_address
from dnsproxy.doctor.judge.providers import UNKNOWN, provider_of
from dnsproxy.doctor.judge.served_ways import NOT_CHECKED
from dnsproxy.doctor.judge.ways import Ways

_MOST: Final = 5


def report_path(facts: Facts, paths: Paths, every: Sequence[Ways] = ()) -> tuple[str, ...]:
    """The lines; none for a diagnosis of all hosts."""
    if not facts.hostname:
        return ()
    lines = [line for path in paths.paths for line in _of_path(path, facts)]
    lines += [f"{_object(host, facts)}, but no Service of the cluster matches it" for host in paths.unmatched[:_MOST]]
    return (*lines, *_of_names(facts, paths), *_of_connections(every))


def _of_path(path: Path, facts: Facts) -> Iterator[str]:
    service = path.service
    for host in path.hosts[:_MOST]:
        yield f"{_object(host, facts)}, enters through Service {service.key}"
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
            yield f"{who} at {lookup.endpoint}: {_answer(lookup, owners)}"
    dns = facts.dns
    if dns is not None and dns.node_local:
        does = "forwards public names to" if dns.node_local_passes_on else "does not forward public names to"
        yield f"pods ask {dns.node_local} first, which {does} the cluster's DNS"
    elif dns is not None and dns.service:
        yield f"pods ask Service {dns.service} at {', '.join(dns.addresses) or 'no address'}, with no cache in between"


def _of_connections(every: Sequence[Ways]) -> Iterator[str]:
    """What a pod gets at each address that the cluster's DNS answers."""
    dialled = [probe for ways in every for one in ways.answers for probe in one.bare]
    yield from describe(dialled)
    if any(map(is_understood, dialled)):
        yield NOT_CHECKED


def _answer(lookup: Lookup, owners: dict[str, str]) -> str:
    if lookup.fault:
        return f"no answer ({lookup.fault})"
    named = [
        f"{address} ({owners[normalize_address(address)]})" if normalize_address(address) in owners else address
        for address in lookup.addresses
    ]
    by = f", by way of {', '.join(lookup.aliases)}" if lookup.aliases else ""
    return (", ".join(named) or "no address") + by


def _owners(facts: Facts, paths: Paths) -> dict[str, str]:
    """The owner of each known address."""
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
