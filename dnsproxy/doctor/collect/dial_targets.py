"""Which names to look up and which ports to dial, derived from what the API server and DNS returned.

The law: every address that a pod may get is dialled, on every web port; the number of names and groups is bounded,
however large the cluster is. The PROXY header is tried where the bare connection failed, and at every controller.
Tested in tests/dnsproxy/doctor/collect/test_dial_targets.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.facts.probes import Header, Lookup, Outcome, Probe
from dnsproxy.doctor.judge.header_mode import is_understood
from dnsproxy.doctor.judge.host_groups import HostGroup
from dnsproxy.doctor.judge.paths import Paths, normalize_address
from dnsproxy.doctor.judge.ways import balancer_addresses, resolve
from dnsproxy.doctor.judge.web_ports import DEFAULT, WebPort, web_ports
from sidecar.values.endpoints import Endpoint

MOST_LOOKUPS: Final = 300
"""Hostnames to look up; the hosts of one controller and one answer share one diagnosis."""
MOST_GROUPS: Final = 60
MOST_PORTS: Final = 4
_MOST_ADDRESSES: Final = 64
"""Of one group; no resolver keeps more of one name."""
_HEADERS: Final = (Header.PLAIN, Header.V1, Header.V2)
_LOST: Final = frozenset([Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.NO_ROUTE])


@dataclass(frozen=True, slots=True)
class DialTarget:
    """One connection to try."""

    endpoint: Endpoint
    hostname: str
    tls: bool
    header: Header = Header.PLAIN


def names_to_look_up(facts: Facts, paths: Paths) -> tuple[str, ...]:
    """The hostname in question, then those of the load balancers, then those of the objects."""
    # Controllers take turns, so that some hostnames of each are looked up.
    columns = [path.hostnames for path in paths.paths] if not facts.hostname else []
    columns += [tuple(sorted({host.hostname for host in paths.unmatched}))] if not facts.hostname else []
    turns = (column[row] for row in range(max(map(len, columns), default=0)) for column in columns if row < len(column))
    balancers = (point.hostname for path in paths.paths for point in path.service.points if point.hostname)
    stated = (text for host in paths.unmatched for text in host.status if not is_address(text))
    asked = (facts.hostname,) if facts.hostname else ()
    return tuple(dict.fromkeys((*asked, *balancers, *stated, *turns)))[:MOST_LOOKUPS]


def dial_targets(facts: Facts, groups: Sequence[HostGroup], lookups: Iterable[Lookup]) -> tuple[DialTarget, ...]:
    """The first connections: bare ones to every address, and all kinds to the controllers."""
    services = {service.key: service for service in facts.services}
    ports = _ports_by_address(facts)
    resolved = resolve(lookups)
    found: dict[DialTarget, None] = {}
    for group in groups[:MOST_GROUPS]:
        own = [services[key] for key in group.services if key in services]
        found |= dict.fromkeys(_of_controllers(own, group))
        found |= dict.fromkeys(_of_addresses(group, own, ports, resolved))
    # A route Service leads to the controller of some groups: it is dialled where their names lead to it.
    if groups and facts.relay is not None and not facts.relay.routes:
        relay = web_ports(facts.relay.ports)[:MOST_PORTS]
        found |= dict.fromkeys(_bare(facts.relay.addresses, relay, groups[0].sample))
    return tuple(found)


def header_targets(probes: Iterable[Probe]) -> tuple[DialTarget, ...]:
    """The connections with a header, for each bare connection that was opened and not answered."""
    dialled = {(probe.address, probe.port, probe.hostname, probe.tls, probe.header) for probe in probes}
    failed = (
        probe
        for probe in probes
        if probe.header is Header.PLAIN and not is_understood(probe) and probe.outcome not in _LOST
    )
    return tuple(
        DialTarget(Endpoint(probe.address, probe.port), probe.hostname, probe.tls, header)
        for probe in failed
        for header in (Header.V1, Header.V2)
        if (probe.address, probe.port, probe.hostname, probe.tls, header) not in dialled
    )


def _of_controllers(services: Iterable[Service], group: HostGroup) -> Iterator[DialTarget]:
    for service in services:
        for address in service.cluster_ips:
            for port, tls in web_ports(service.ports)[:MOST_PORTS]:
                for header in _HEADERS:
                    yield DialTarget(Endpoint(address, port), group.sample, tls, header)


def _of_addresses(
    group: HostGroup,
    own: Sequence[Service],
    ports: Mapping[str, tuple[WebPort, ...]],
    resolved: Mapping[str, tuple[str, ...]],
) -> Iterator[DialTarget]:
    usual = tuple(dict.fromkeys(port for service in own for port in web_ports(service.ports)))[:MOST_PORTS]
    if not any(service.ports for service in own):
        usual = DEFAULT
    inner = {normalize_address(ip) for service in own for ip in service.cluster_ips}
    addresses = (*group.answers, *balancer_addresses(group, own, resolved))
    for address in dict.fromkeys(map(normalize_address, addresses[:_MOST_ADDRESSES])):
        if address not in inner:
            yield from _bare((address,), ports.get(address, usual), group.sample)


def _bare(addresses: Iterable[str], ports: Sequence[WebPort], hostname: str) -> Iterator[DialTarget]:
    for address in addresses:
        if is_address(address):
            for port, tls in ports:
                yield DialTarget(Endpoint(address, port), hostname, tls)


def _ports_by_address(facts: Facts) -> dict[str, tuple[WebPort, ...]]:
    """The web ports behind each address of our relay and of each Service, which others may share."""
    found: dict[str, dict[WebPort, None]] = {}
    places = [(service.ports, (*service.cluster_ips, *_points(service))) for service in facts.services]
    if facts.relay is not None:
        places += [(facts.relay.ports, facts.relay.addresses)]
        places += [(route.ports, route.addresses) for route in facts.relay.routes]
    for ports, addresses in places:
        for address in addresses:
            found.setdefault(normalize_address(address), {}).update(dict.fromkeys(web_ports(ports)[:MOST_PORTS]))
    return {address: tuple(ports) for address, ports in found.items() if ports}


def _points(service: Service) -> tuple[str, ...]:
    return (*(point.ip for point in service.points if point.ip), *service.external_ips)
