"""Paths: the Services through which a hostname's connections enter: object, class, load balancer, Service.

The law: an object's status is compared with the status of the Services. Several Services can share an address: those of
the class's controller are meant, or else all with a web port. If no Service matches, the Service of the class's
controller is used, provided that there is exactly one. A host without a Service is reported, never guessed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, Host, Service
from dnsproxy.doctor.judge.web_ports import web_ports

_NEAR: Final = 3
_CUTOFF: Final = 0.6
_LABEL: Final = "switchback-doctor"

ENVOY_GATEWAY: Final = "envoy-gateway"
CONTROLLERS: Final[Mapping[str, tuple[str, ...]]] = {
    "k8s.io/ingress-nginx": ("ingress-nginx",),
    "nginx.org/ingress-controller": ("nginx-ingress",),
    "traefik.io/ingress-controller": ("traefik",),
    "haproxy-ingress.github.io/controller": ("haproxy-ingress",),
    "haproxy.org/ingress-controller": ("kubernetes-ingress",),
    "projectcontour.io/": ("contour", "envoy"),
    "ingress-controllers.konghq.com/": ("kong", "gateway"),
    "istio.io/": ("istio-ingressgateway", "istio-ingress", "gateway"),
    "cilium.io/": ("cilium",),
    "io.cilium/": ("cilium",),
    "gateway.envoyproxy.io/": (ENVOY_GATEWAY, "envoy", "gateway"),
    "zalando.org/skipper": ("skipper",),
}
"""From a prefix of a class's `spec.controller` to the `app.kubernetes.io/name` (or `app`) labels of its Services."""
_BY_KIND: Final[Mapping[str, str]] = MappingProxyType(
    {
        "IngressRoute": "traefik.io/ingress-controller",
        "IngressRouteTCP": "traefik.io/ingress-controller",
        "HTTPProxy": "projectcontour.io/",
        "IstioGateway": "istio.io/",
        "VirtualService": "istio.io/",
    }
)
"""The controller of the kinds that only one project's controllers read, for objects without a known class."""
NAME_LABELS: Final = ("app.kubernetes.io/name", "app")
OWNING_GATEWAY: Final = "gateway.envoyproxy.io/owning-gateway-name"
OWNING_NAMESPACE: Final = "gateway.envoyproxy.io/owning-gateway-namespace"
"""Of a Gateway's Envoys, which are in the namespace of Envoy Gateway."""
GATEWAY_LABELS: Final = ("gateway.networking.k8s.io/gateway-name", OWNING_GATEWAY)


@dataclass(frozen=True, slots=True)
class Path:
    """The hosts whose connections enter through one Service."""

    service: Service
    hosts: tuple[Host, ...]
    guessed: bool = False
    """Whether the Service was found by its labels, because no status names it."""

    @property
    def ingress_class(self) -> str:
        """The class of its hosts, as a flag takes it; `CLASS` if no host has one."""
        return next((host.ingress_class for host in self.hosts if host.ingress_class), "CLASS")

    @property
    def hostnames(self) -> tuple[str, ...]:
        """Each hostname once, sorted."""
        return tuple(sorted({host.hostname for host in self.hosts}))


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of all hosts that the diagnosis is about."""

    paths: tuple[Path, ...]
    unmatched: tuple[Host, ...] = ()
    """Hosts for which no Service was found."""

    def with_services(self, services: Iterable[Service]) -> Paths:
        """The same paths, with newer facts about their Services."""
        by_key = {service.key: service for service in services}
        return replace(self, paths=tuple(replace(path, service=by_key[path.service.key]) for path in self.paths))


def name_to_ask(hostname: str) -> str:
    """The hostname, or a name that its wildcard covers."""
    return f"{_LABEL}{hostname[1:]}" if is_wildcard(hostname) else hostname


def covers(pattern: str, hostname: str, *, one_label: bool) -> bool:
    """Whether an object's hostname or wildcard covers a hostname.

    `one_label`: the wildcard of an Ingress covers one label (networking/v1 IngressRule.host), that of the Gateway API
    one or more (Gateway API, Listener.hostname).
    """
    if pattern == hostname:
        return True
    labels = hostname.removesuffix(pattern[1:])
    if not is_wildcard(pattern) or labels == hostname or not labels:
        return False
    return "." not in labels or not one_label


def hosts_meant(facts: Facts) -> tuple[Host, ...]:
    """The hosts that the diagnosis is about: all hosts, or those of one hostname; exact names before wildcards."""
    if not facts.hostname:
        return facts.hosts
    exact = tuple(host for host in facts.hosts if host.hostname == facts.hostname)
    return exact or tuple(host for host in facts.hosts if _serves(host, facts.hostname))


def _serves(host: Host, hostname: str) -> bool:
    of_kind = host.origin.startswith("Ingress ")
    return covers(host.hostname, hostname, one_label=of_kind if host.one_label is None else host.one_label)


def near_names(facts: Facts) -> tuple[str, ...]:
    """Known hostnames that are similar to the requested hostname."""
    known = sorted({host.hostname for host in facts.hosts})
    return tuple(difflib.get_close_matches(facts.hostname, known, n=_NEAR, cutoff=_CUTOFF))


def find_paths(facts: Facts) -> Paths:
    """The Services through which the connections of the hosts enter."""
    by_address = services_by_address(facts.services)
    by_class = {one.name: _of_controller(facts, one.controller) for one in facts.classes}
    by_kind = {kind: _of_controller(facts, controller) for kind, controller in _BY_KIND.items()}
    found: dict[str, list[Host]] = {}
    guessed: set[str] = set()
    unmatched = []
    for host in hosts_meant(facts):
        labelled = by_class[host.ingress_class] if host.ingress_class in by_class else by_kind.get(_kind(host), ())
        services = _by_status(host, by_address, labelled)
        if not services:
            services = _only(labelled)
            guessed |= set(services)
        for key in services:
            found.setdefault(key, []).append(host)
        if not services:
            unmatched.append(host)
    by_key = {service.key: service for service in facts.services}
    paths = (Path(by_key[key], tuple(hosts), key in guessed) for key, hosts in sorted(found.items()))
    return Paths(tuple(paths), tuple(unmatched))


def _kind(host: Host) -> str:
    return host.origin.partition(" ")[0]


def _by_status(host: Host, by_address: Mapping[str, Sequence[Service]], labelled: Sequence[Service]) -> tuple[str, ...]:
    """The keys of the Services with an address of the host's status: each address has its own."""
    keys = {one.key for one in labelled}
    found: dict[str, None] = {}
    for address in map(normalize_address, host.status):
        shared = by_address.get(address, ())
        meant = [one for one in shared if one.key in keys] or [one for one in shared if web_ports(one.ports)] or shared
        found |= dict.fromkeys(one.key for one in meant)
    return tuple(found)


def services_by_address(services: Iterable[Service]) -> dict[str, tuple[Service, ...]]:
    """The Services by the addresses in their status and their external IPs; an address can have several.

    An address that no status has is looked up among the ClusterIPs, for a controller may publish its ClusterIP.
    """
    entries: dict[str, dict[str, Service]] = {}
    inner: dict[str, dict[str, Service]] = {}
    for service in services:
        for text in entries_of(service):
            entries.setdefault(normalize_address(text), {})[service.key] = service
        for text in service.cluster_ips:
            inner.setdefault(normalize_address(text), {})[service.key] = service
    return {address: tuple(found.values()) for address, found in (inner | entries).items()}


def relay_addresses(facts: Facts) -> frozenset[str]:
    """The addresses of our relay's Service, normalized; empty without a relay."""
    return frozenset(map(normalize_address, facts.relay.addresses if facts.relay else ()))


def entries_of(service: Service) -> tuple[str, ...]:
    """The addresses and hostnames of a Service's load balancer, and its external IPs."""
    texts = (text for point in service.points for text in (point.ip, point.hostname) if text)
    return (*texts, *service.external_ips)


def normalize_address(text: str) -> str:
    """An address or hostname in the form in which equal ones are equal texts."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text.lower().removesuffix(".")


def _of_controller(facts: Facts, controller: str) -> tuple[Service, ...]:
    """The Services of a class's controller, by their labels; without those of its webhooks and metrics."""
    names = next((names for start, names in CONTROLLERS.items() if controller.startswith(start)), ())
    return tuple(one for one in facts.services if is_controller(one, names) and web_ports(one.ports))


def _only(services: Sequence[Service]) -> tuple[str, ...]:
    """The key of the only Service that clients from outside reach best; none if there are none or several."""
    for kind in ("LoadBalancer", "NodePort", "ClusterIP"):
        found = [one.key for one in services if one.type == kind]
        if found:
            return tuple(found) if len(found) == 1 else ()
    return ()


def is_controller(service: Service, names: Iterable[str]) -> bool:
    """Whether a Service has one of these names in its labels, and TCP ports."""
    labelled = {service.labels.get(label) for label in NAME_LABELS}
    return not labelled.isdisjoint(names) and bool(service.ports)
