"""Roads: which Service a hostname's connections come in through: object, class, load balancer, Service.

The law: an object's status is compared with the Services' own; only where an object has none is a controller's Service
taken by the class's name, and only where there is a single one. What is not found is said, not guessed. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, Host, Service

_NEAR: Final = 3
_CUTOFF: Final = 0.6

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
    "gateway.envoyproxy.io/": ("envoy", "gateway"),
}
"""By the beginning of a class's `spec.controller`: what `app.kubernetes.io/name` (or `app`) its Services have."""
NAME_LABELS: Final = ("app.kubernetes.io/name", "app")
GATEWAY_LABELS: Final = ("gateway.networking.k8s.io/gateway-name", "gateway.envoyproxy.io/owning-gateway-name")


@dataclass(frozen=True, slots=True)
class Road:
    """The hosts that come in through one Service."""

    service: Service
    hosts: tuple[Host, ...]
    guessed: bool = False
    """Whether the Service was taken by its labels, because no status says so."""

    @property
    def ingress_class(self) -> str:
        """The class of its hosts, as a flag is to name it; `CLASS` where none of them has one."""
        return next((host.ingress_class for host in self.hosts if host.ingress_class), "CLASS")

    @property
    def hostnames(self) -> tuple[str, ...]:
        """Each once, sorted."""
        return tuple(sorted({host.hostname for host in self.hosts}))


@dataclass(frozen=True, slots=True)
class Roads:
    """All that are meant, and the hosts without one."""

    roads: tuple[Road, ...]
    lost: tuple[Host, ...] = ()
    """No Service was found for these."""


def covers(pattern: str, hostname: str) -> bool:
    """Whether an object's hostname, be it a wildcard, is the one that was asked for."""
    if pattern == hostname:
        return True
    # More than an Ingress's wildcard covers, which is one label: whoever asks is told of the nearest object.
    return is_wildcard(pattern) and hostname.endswith(pattern[1:]) and len(hostname) > len(pattern) - 1


def hosts_meant(facts: Facts) -> tuple[Host, ...]:
    """The hosts that the diagnosis is about: all, or those of the asked name; an exact one before a wildcard."""
    if not facts.hostname:
        return facts.hosts
    exact = tuple(host for host in facts.hosts if host.hostname == facts.hostname)
    return exact or tuple(host for host in facts.hosts if covers(host.hostname, facts.hostname))


def near_names(facts: Facts) -> tuple[str, ...]:
    """Hostnames that look like the one that was asked for."""
    known = sorted({host.hostname for host in facts.hosts})
    return tuple(difflib.get_close_matches(facts.hostname, known, n=_NEAR, cutoff=_CUTOFF))


def find_roads(facts: Facts) -> Roads:
    """Through which Services the meant hosts come in."""
    by_point = _by_point(facts.services)
    found: dict[str, list[Host]] = {}
    guessed: set[str] = set()
    lost = []
    for host in hosts_meant(facts):
        points = map(normal_point, host.status)
        services = {by_point[point].key: None for point in points if point in by_point}
        if not services:
            guess = _by_class(facts, host)
            services = {guess.key: None} if guess else {}
            guessed |= services.keys()
        for key in services:
            found.setdefault(key, []).append(host)
        if not services:
            lost.append(host)
    by_key = {service.key: service for service in facts.services}
    roads = (Road(by_key[key], tuple(hosts), key in guessed) for key, hosts in sorted(found.items()))
    return Roads(tuple(roads), tuple(lost))


def _by_point(services: Iterable[Service]) -> dict[str, Service]:
    """The Services by what their status says; ClusterIPs too, for a controller may publish that of its Service."""
    found: dict[str, Service] = {}
    for service in services:
        for text in (*service.cluster_ips, *service.external_ips):
            found.setdefault(normal_point(text), service)
    for service in services:
        for point in service.points:
            found |= {normal_point(text): service for text in (point.ip, point.hostname) if text}
    return found


def normal_point(text: str) -> str:
    """An address or hostname in the form in which equal ones are equal texts."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text.lower().removesuffix(".")


def _by_class(facts: Facts, host: Host) -> Service | None:
    """The one Service of the host's controller, by its labels; None where there is none, or several."""
    controllers = {one.name: one.controller for one in facts.classes}
    controller = controllers.get(host.ingress_class, "")
    names = next((names for start, names in CONTROLLERS.items() if controller.startswith(start)), ())
    fitting = [service for service in facts.services if is_controller(service, names)]
    return fitting[0] if len(fitting) == 1 else None


def is_controller(service: Service, names: Iterable[str]) -> bool:
    """Whether a Service has one of these names in its labels, and web ports."""
    labelled = {service.labels.get(label) for label in NAME_LABELS}
    return not labelled.isdisjoint(names) and bool(service.ports)
