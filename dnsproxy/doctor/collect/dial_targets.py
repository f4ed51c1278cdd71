"""Targets: which names to look up and which ports to dial, worked out of what the API server told.

The law: bounded, however large the cluster is: a controller is dialled for one of its hosts, not for all. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, Header, Lookup, Part, Port, Role, Service
from dnsproxy.doctor.judge.paths import Road, find_roads
from sidecar.endpoints import Endpoint

MOST_LOOKUPS: Final = 300
"""Hostnames that are looked up; those of one controller share their fate."""
MOST_ROADS: Final = 20
MOST_PORTS: Final = 4
_MOST_POINTS: Final = 2
_LABEL: Final = "switchback-doctor"
_TLS_PORTS: Final = frozenset([443, 8443])
_WEB_PORTS: Final = frozenset([80, 8080, 8000])
_HEADERS: Final = (Header.PLAIN, Header.V1, Header.V2)


@dataclass(frozen=True, slots=True)
class Target:
    """One connection to try."""

    role: Role
    service: str
    endpoint: Endpoint
    hostname: str
    tls: bool
    header: Header = Header.PLAIN


def name_to_ask(hostname: str) -> str:
    """The hostname, or a name that its wildcard covers."""
    return f"{_LABEL}{hostname[1:]}" if is_wildcard(hostname) else hostname


def names_to_look_up(facts: Facts) -> tuple[str, ...]:
    """The hostnames, as objects have them, and the load balancers' own; the asked one first."""
    roads = find_roads(facts)
    # Controllers take turns, so that each has some looked up.
    columns = [road.hostnames for road in roads.roads]
    columns += [tuple(sorted({host.hostname for host in roads.lost}))]
    turns = (column[row] for row in range(max(map(len, columns))) for column in columns if row < len(column))
    points = (point.hostname for road in roads.roads for point in road.service.points if point.hostname)
    asked = (facts.hostname,) if facts.hostname else ()
    return tuple(dict.fromkeys((*asked, *points, *turns)))[:MOST_LOOKUPS]


def is_tls(port: Port) -> bool | None:
    """Whether a port speaks TLS first; None where it is no web port that could be asked something."""
    words = f"{port.name} {port.app_protocol}".lower()
    if port.port in _TLS_PORTS or any(word in words for word in ("https", "tls", "secure")):
        return True
    return False if port.port in _WEB_PORTS or "http" in words or "web" in words else None


def targets_of(facts: Facts, lookups: Iterable[Lookup]) -> tuple[Target, ...]:
    """All that is to be dialled."""
    addresses: dict[str, tuple[str, ...]] = {}
    for lookup in lookups:
        if lookup.addresses and (lookup.server == "public" or lookup.hostname not in addresses):
            addresses[lookup.hostname] = lookup.addresses
    roads = find_roads(facts).roads[:MOST_ROADS]
    found = [target for road in roads for target in _of_road(road, facts, addresses)]
    if facts.relay is not None and roads:
        found += _of_relay(facts.relay, _hostname(roads[0], facts))
    return tuple(dict.fromkeys(found))


def _of_road(road: Road, facts: Facts, addresses: dict[str, tuple[str, ...]]) -> Iterator[Target]:
    service, hostname = road.service, _hostname(road, facts)
    ports = tuple(_web(service.ports))
    for port, tls in ports:
        for address in service.cluster_ips[:1]:
            for header in _HEADERS:
                yield Target(Role.CONTROLLER, service.key, Endpoint(address, port), hostname, tls, header)
    for address in _points(service, road, addresses):
        for port, tls in ports:
            yield Target(Role.BALANCER, service.key, Endpoint(address, port), hostname, tls)


def _points(service: Service, road: Road, addresses: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Where a pod is led that knows the public record alone."""
    ips = [*(point.ip for point in service.points if point.ip), *service.external_ips]
    if not ips:
        names = [point.hostname for point in service.points if point.hostname] or list(road.hostnames[:1])
        ips = [address for name in names for address in addresses.get(name, ())]
    own = set(service.cluster_ips)
    return tuple(ip for ip in dict.fromkeys(ips) if is_address(ip) and ip not in own)[:_MOST_POINTS]


def _of_relay(part: Part, hostname: str) -> Iterator[Target]:
    for port, tls in _web(part.ports):
        for address in part.addresses[:1]:
            if is_address(address):
                yield Target(Role.RELAY, part.key, Endpoint(address, port), hostname, tls)


def _web(ports: Iterable[Port]) -> Iterator[tuple[int, bool]]:
    asked = [(port.port, tls) for port in ports if (tls := is_tls(port)) is not None]
    yield from asked[:MOST_PORTS]


def _hostname(road: Road, facts: Facts) -> str:
    return facts.hostname or name_to_ask(next(iter(road.hostnames), "localhost"))
