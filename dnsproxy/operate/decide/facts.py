"""Facts: what was read and measured about subjects, controllers' Services, their endpoints, and route Services.

The law: values alone, no judgement. The last decisions are the route Services themselves. The doctor has the same facts
about Services and about connections (dnsproxy/doctor/facts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.declared_header import parse_networks
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.short_circuit import DataPlane
from sidecar.kubernetes.route_services import gateway_subject, ingress_class_subject, parse_subjects
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What is steered: an ingress class, or with a namespace a Gateway."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return gateway_subject(self.namespace, self.name) if self.namespace else ingress_class_subject(self.name)


def parse_subject(text: str) -> Subject:
    """The subject of `ingressclass/NAME` or `gateway/NAMESPACE/NAME`. Raises ValueError."""
    (subject,) = parse_subjects(text)
    _, *parts = subject.split("/")
    return Subject(parts[-1], parts[0] if len(parts) > 1 else "")


@dataclass(frozen=True, slots=True)
class SubjectFacts:
    """What is known about a subject."""

    subject: Subject
    hostnames: int = 0
    """How many names dnsproxy would answer for it."""
    examples: tuple[str, ...] = ()
    """Some of these names; wildcards last."""
    status: tuple[str, ...] = ()
    """The addresses and hostnames of the load balancers in the statuses of its objects."""
    backend: str | None = None
    """The annotation `switchback.dev/backend` of the IngressClass or Gateway, as it is written."""
    owners: frozenset[str] = frozenset()
    """What owns the IngressClass or Gateway, for display and comparison: `Helm release web/nginx`."""


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """A Service that a controller may be behind."""

    service: Service
    selector: tuple[tuple[str, str], ...] = ()
    """Sorted."""
    owners: frozenset[str] = frozenset()
    """As SubjectFacts.owners."""
    endpoints: Mapping[int, tuple[Endpoint, ...]] | None = None
    """By port of the Service: where the pods listen that get new connections; None if they were not read yet."""
    leaving: Mapping[int, tuple[Endpoint, ...]] = field(default_factory=dict)
    """The same of the terminating pods that still serve. A relay uses one while it holds back its successor."""

    @property
    def key(self) -> str:
        """`NAMESPACE/NAME`."""
        return self.service.key

    @property
    def limited_families(self) -> frozenset[int]:
        """The address families (4, 6) in which its source ranges exclude some clients, as kube-proxy reads them.

        Ranges of one family do not limit the other one. If no range is a network, both families are limited.
        """
        networks = parse_networks(self.service.source_ranges)
        if self.service.source_ranges and not networks:
            return frozenset([4, 6])
        return frozenset(one.version for one in networks) - {one.version for one in networks if not one.prefixlen}

    def lets_in(self, addresses: Iterable[str]) -> bool:
        """Whether its source ranges admit all of these addresses."""
        networks, limited = parse_networks(self.service.source_ranges), self.limited_families
        places = map(ip_address, addresses)
        return all(one.version not in limited or any(one in each for each in networks) for one in places)


Place = tuple[str, int, Endpoint]
"""A Service `NAMESPACE/NAME`, one of its ports, and an endpoint of it."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What the last probe of a place showed."""

    mode: HeaderMode
    versions: tuple[str, ...] = ()
    """The versions of the header that it understood: v1, v2."""
    detail: str = ""
    """The answers, for people: `plain closed, v1 answered (404)`."""
    reached: bool = True
    """Whether a host took or refused a connection; False behind a network policy that drops it."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """Connections through the relay of one subject to its controller, end to end."""

    relay_to: str
    """The backend, `NAMESPACE/NAME`; what was seen of another one does not count."""
    succeeded: bool = False
    """Whether one succeeded."""
    failures: int = 0
    """How many failed in a row since the last success."""
    detail: str = ""
    """The last answer, for people."""
    uid: str = ""
    """The relay Service; what was seen through one that was deleted does not count."""
    headers: str = ""
    """Those of its own ports at that time; what was seen with another header does not count."""


@dataclass(frozen=True, slots=True)
class ListenPort:
    """A port of a route Service, and where the relay listens for it."""

    port: int
    listen: int
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Route:
    """A Service of our namespace, with the text of its annotations; without `relay_to` it only takes its name."""

    name: str
    resource_version: str = ""
    ours: bool = False
    """Whether its label says that we manage it."""
    relay_to: str = ""
    port_backends: str = ""
    headers: str = ""
    endpoint_headers: str = ""
    subjects: str = ""
    balancers: str = ""
    released: str = ""
    ports: tuple[ListenPort, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    type: str = "ClusterIP"
    addresses: tuple[str, ...] = field(default=(), compare=False)
    """Its ClusterIPs, which the API server gives; not ours to write."""
    uid: str = field(default="", compare=False)
    created: str = field(default="", compare=False)
    """RFC 3339, as the API server has it."""


@dataclass(frozen=True)
class Facts:
    """One reading of the cluster."""

    namespace: str
    """Ours."""
    relay_selector: tuple[tuple[str, str], ...] = ()
    """The labels by which a Service selects our relay's pods."""
    relay_endpoints: tuple[str, ...] = ()
    """The addresses of the relay's ready pods, one for each pod."""
    relay_families: frozenset[str] = frozenset()
    """The families of all their addresses: IPv4, IPv6. A Service has no endpoint in another one."""
    subjects: tuple[SubjectFacts, ...] = ()
    services: Mapping[str, ServiceFacts] = field(default_factory=dict)
    """All Services of type LoadBalancer, and those that an annotation or a route names; by `NAMESPACE/NAME`."""
    plane: DataPlane | None = None
    """What carries the connections of pods to Services; None if it was not read."""
    why_no_plane: str = ""
    """Why the last reading of it failed; empty if it did not."""
    balancers: Mapping[str, bool] = field(default_factory=dict)
    """By Service: whether a bare connection from here to its load balancer is answered, where that was tried."""
    probes: Mapping[Place, Probed] = field(default_factory=dict)
    handshakes: Mapping[Subject, Handshake] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    complete: bool = False
    """Whether everything was read; otherwise what is missing here may still exist."""

    @cached_property
    def own_routes(self) -> Mapping[str, Route]:
        """The routes that we wrote, by name."""
        return {one.name: one for one in self.routes if one.ours}

    @cached_property
    def by_address(self) -> Mapping[str, Sequence[ServiceFacts]]:
        """The Services of type LoadBalancer by each address and hostname of their status, in canonical form."""
        return self._balancers_by(lambda one: (normalize_address(at.ip or at.hostname) for at in one.service.points))

    @cached_property
    def by_external_ip(self) -> Mapping[str, Sequence[ServiceFacts]]:
        """The same by external IP."""
        return self._balancers_by(lambda one: map(normalize_address, one.service.external_ips))

    @cached_property
    def by_owner(self) -> Mapping[str, Sequence[ServiceFacts]]:
        """The same by owner."""
        return self._balancers_by(lambda one: one.owners)

    def _balancers_by(self, keys: Callable[[ServiceFacts], Iterable[str]]) -> dict[str, list[ServiceFacts]]:
        found: dict[str, list[ServiceFacts]] = {}
        for _, service in sorted(self.services.items()):
            for key in dict.fromkeys(keys(service)) if service.service.type == "LoadBalancer" else ():
                found.setdefault(key, []).append(service)
        return found
