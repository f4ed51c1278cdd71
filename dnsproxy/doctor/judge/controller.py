"""A controller: one Service with everything that is known about it.

The law: a connection that was tried overrides what was derived from settings. What follows from settings alone can show
that pods fail, never that they are served. Tested in tests/dnsproxy/doctor/judge/test_controller_findings.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.declared_header import declared
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.header_mode import HeaderMode, PortKey, by_port, header_mode_of, overall, usable_probes
from dnsproxy.doctor.judge.nlb import returns_connections
from dnsproxy.doctor.judge.paths import Path, entries_of, normalize_address
from dnsproxy.doctor.judge.providers import Provider, provider_of, sends
from dnsproxy.doctor.judge.reach import statuses
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane, ShortCircuit, data_plane, short_circuit
from dnsproxy.doctor.judge.web_ports import WebPort

_UNPARSED: Final = frozenset([Outcome.GARBAGE, Outcome.BAD_REQUEST])
_UNDERSTOOD: Final = frozenset([Outcome.ANSWERED, Outcome.ALERT])


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller's Service with everything that is known about it."""

    path: Path
    provider: Provider
    plane: DataPlane
    short: ShortCircuit
    sends: Sends
    header_mode: HeaderMode
    declared: bool
    """Whether `header_mode` comes from the controller's settings, because probes did not show it."""
    probes: tuple[Probe, ...]
    """Those of its ClusterIPs."""
    modes: Mapping[int, HeaderMode] = field(default_factory=dict)
    """The mode of each port that was dialled at them."""

    @property
    def key(self) -> str:
        """`NAMESPACE/NAME` of its Service."""
        return self.path.service.key

    @property
    def about(self) -> str:
        """The object, for display."""
        return f"Service {self.key}"

    @property
    def balancer(self) -> frozenset[str]:
        """The addresses and hostnames of its load balancer, and its external IPs."""
        return frozenset(map(normalize_address, entries_of(self.path.service)))

    @property
    def inner(self) -> frozenset[str]:
        """Its ClusterIPs."""
        return frozenset(map(normalize_address, self.path.service.cluster_ips))

    @property
    def is_down(self) -> bool:
        """Whether it answers no connection, with or without the header."""
        return self.header_mode in (HeaderMode.DEAD, HeaderMode.SILENT)

    @property
    def refused_header(self) -> bool:
        """Whether the header was tried at its ClusterIP, and answered as bytes that are no request."""
        tried = [probe.outcome for probe in self.probes if probe.header is not Header.PLAIN]
        return bool(tried) and set(tried) <= {Outcome.BAD_REQUEST, Outcome.GARBAGE}

    @property
    def lacks_tls(self) -> bool:
        """Whether a port for TLS answers a handshake in plain text: TLS ends at its load balancer."""
        ports = [[probe.outcome for probe in of] for (_, _, tls, _), of in by_port(self.probes).items() if tls]
        return any(_UNPARSED.intersection(one) and not _UNDERSTOOD.intersection(one) for one in ports)

    @property
    def takes_bare(self) -> bool:
        """Whether a pod is served at its ClusterIP without the PROXY header."""
        return self.header_mode in (HeaderMode.ACCEPTS, HeaderMode.REJECTS)

    @property
    def fails_by_settings(self) -> Answer:
        """Whether pods that dial the load balancer's address fail, by statuses, settings and the header mode."""
        if self.short.state is Answer.NO or self.takes_bare:
            return Answer.NO
        required = self.header_mode is HeaderMode.REQUIRES
        return Answer.YES if self.short.state is Answer.YES and required else Answer.UNKNOWN

    @property
    def loops_back(self) -> bool:
        """Whether it is an AWS NLB that may return a connection to the node that it came from."""
        return returns_connections(self.provider, self.path.service)

    def at(self, ports: Iterable[int]) -> Controller:
        """The same controller as the clients of these ports see it; unchanged if none of them was dialled."""
        modes = [self.modes[port] for port in sorted(set(ports)) if port in self.modes]
        return replace(self, header_mode=overall(modes), declared=False) if modes else self

    def greets(self, hostname: str, port: int) -> bool:
        """Whether a TLS handshake for a hostname was finished at a port of its ClusterIPs, bare or with the header."""
        own = (probe for probe in self.probes if probe.hostname == hostname and (probe.port, probe.tls) == (port, True))
        return any(probe.outcome is Outcome.ANSWERED for probe in own)

    def statuses(self, hostname: str) -> dict[WebPort, int]:
        """The HTTP status of each port for a hostname, with the header if the port requires it."""
        asked = [probe for probe in self.probes if probe.hostname == hostname]
        headed = statuses(probe for probe in asked if probe.header is not Header.PLAIN)
        return {**headed, **statuses(probe for probe in asked if probe.header is Header.PLAIN)}


def make_controller(path: Path, facts: Facts) -> Controller:
    """The controller of one path."""
    service = path.service
    plane = data_plane(facts)
    provider = provider_of(service, facts.provider)
    inner = frozenset(map(normalize_address, service.cluster_ips))
    ports = frozenset(port.port for port in service.ports)
    probes = tuple(
        probe
        for probe in usable_probes(facts.probes)
        if normalize_address(probe.address) in inner and probe.port in ports
    )
    found = {place: header_mode_of(of_port) for place, of_port in by_port(probes).items()}
    header_mode = overall(list(found.values()))
    said = declared(service, facts)
    use_declared = header_mode is HeaderMode.UNKNOWN and said is not HeaderMode.UNKNOWN
    return Controller(
        path,
        provider,
        plane,
        short_circuit(service, plane),
        sends(provider, service),
        said if use_declared else header_mode,
        use_declared,
        probes,
        _by_number(found),
    )


def _by_number(found: Mapping[PortKey, HeaderMode]) -> dict[int, HeaderMode]:
    """The mode of each port number over all ClusterIPs and hostnames."""
    modes: dict[int, list[HeaderMode]] = {}
    for (_, port, _, _), mode in found.items():
        modes.setdefault(port, []).append(mode)
    return {port: overall(of_port) for port, of_port in modes.items()}
