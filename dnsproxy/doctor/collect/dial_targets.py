"""Which names to look up and which ports to dial, derived from what the API server returned.

The law: the number is bounded, however large the cluster is: a controller is dialled for one of its hosts, not for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.doctor.facts.model import Facts, OwnService, Port, Service
from dnsproxy.doctor.facts.probes import Header, Lookup, Role
from dnsproxy.doctor.judge.paths import Path, Paths, name_to_ask
from sidecar.values.endpoints import Endpoint

MOST_LOOKUPS: Final = 300
"""Hostnames to look up; the hosts of one controller share one diagnosis."""
MOST_PATHS: Final = 20
MOST_PORTS: Final = 4
_MOST_ADDRESSES: Final = 2
_TLS_PORTS: Final = frozenset([443, 8443])
_WEB_PORTS: Final = frozenset([80, 8080, 8000])
_HEADERS: Final = (Header.PLAIN, Header.V1, Header.V2)


@dataclass(frozen=True, slots=True)
class DialTarget:
    """One connection to try."""

    role: Role
    service: str
    endpoint: Endpoint
    hostname: str
    tls: bool
    header: Header = Header.PLAIN


def names_to_look_up(facts: Facts, paths: Paths) -> tuple[str, ...]:
    """The hostname in question, then those of the load balancers, then those of the objects."""
    # Controllers take turns, so that some hostnames of each are looked up.
    columns = [path.hostnames for path in paths.paths]
    columns += [tuple(sorted({host.hostname for host in paths.unmatched}))]
    turns = (column[row] for row in range(max(map(len, columns))) for column in columns if row < len(column))
    balancers = (point.hostname for path in paths.paths for point in path.service.points if point.hostname)
    asked = (facts.hostname,) if facts.hostname else ()
    return tuple(dict.fromkeys((*asked, *balancers, *turns)))[:MOST_LOOKUPS]


def is_tls(port: Port) -> bool | None:
    """Whether a port starts with a TLS handshake; None if it is no web port, so that it cannot be probed."""
    words = f"{port.name} {port.app_protocol}".lower()
    if port.port in _TLS_PORTS or any(word in words for word in ("https", "tls", "secure")):
        return True
    return False if port.port in _WEB_PORTS or "http" in words or "web" in words else None


def dial_targets(facts: Facts, paths: Paths, lookups: Iterable[Lookup]) -> tuple[DialTarget, ...]:
    """All connections to try."""
    addresses: dict[str, tuple[str, ...]] = {}
    for lookup in lookups:
        if lookup.addresses and (lookup.server == "public" or lookup.hostname not in addresses):
            addresses[lookup.hostname] = lookup.addresses
    dialled = paths.paths[:MOST_PATHS]
    found = [target for path in dialled for target in _of_path(path, facts, addresses)]
    if facts.relay is not None and dialled:
        found += _of_relay(facts.relay, _hostname(dialled[0], facts))
    return tuple(dict.fromkeys(found))


def _of_path(path: Path, facts: Facts, addresses: dict[str, tuple[str, ...]]) -> Iterator[DialTarget]:
    service, hostname = path.service, _hostname(path, facts)
    ports = tuple(_web(service.ports))
    for port, tls in ports:
        for address in service.cluster_ips[:1]:
            for header in _HEADERS:
                yield DialTarget(Role.CONTROLLER, service.key, Endpoint(address, port), hostname, tls, header)
    for address in _balancer_addresses(service, path, addresses):
        for port, tls in ports:
            yield DialTarget(Role.BALANCER, service.key, Endpoint(address, port), hostname, tls)


def _balancer_addresses(service: Service, path: Path, addresses: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The addresses that a pod dials if it only knows the public record."""
    ips = [*(point.ip for point in service.points if point.ip), *service.external_ips]
    if not ips:
        names = [point.hostname for point in service.points if point.hostname] or list(path.hostnames[:1])
        ips = [address for name in names for address in addresses.get(name, ())]
    own = set(service.cluster_ips)
    return tuple(ip for ip in dict.fromkeys(ips) if is_address(ip) and ip not in own)[:_MOST_ADDRESSES]


def _of_relay(part: OwnService, hostname: str) -> Iterator[DialTarget]:
    for port, tls in _web(part.ports):
        for address in part.addresses[:1]:
            if is_address(address):
                yield DialTarget(Role.RELAY, part.key, Endpoint(address, port), hostname, tls)


def _web(ports: Iterable[Port]) -> Iterator[tuple[int, bool]]:
    probed = [(port.port, tls) for port in ports if (tls := is_tls(port)) is not None]
    yield from probed[:MOST_PORTS]


def _hostname(path: Path, facts: Facts) -> str:
    return facts.hostname or name_to_ask(next(iter(path.hostnames), "localhost"))
