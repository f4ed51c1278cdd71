"""Paths: the Service through which a hostname's connections enter: object, class, load balancer, Service.

The law: an object's status is compared with the status of the Services. If no Service matches, the Service of the
class's controller is used, provided that there is exactly one. A host without a Service is reported, never guessed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, Host, Service

_NEAR: Final = 3
_CUTOFF: Final = 0.6
_LABEL: Final = "switchback-doctor"

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
"""From a prefix of a class's `spec.controller` to the `app.kubernetes.io/name` (or `app`) labels of its Services."""
NAME_LABELS: Final = ("app.kubernetes.io/name", "app")
GATEWAY_LABELS: Final = ("gateway.networking.k8s.io/gateway-name", "gateway.envoyproxy.io/owning-gateway-name")


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


def covers(pattern: str, hostname: str) -> bool:
    """Whether an object's hostname or wildcard covers the hostname that the user asked about."""
    if pattern == hostname:
        return True
    # An Ingress's wildcard covers one label only. More labels match here, so that the user sees the nearest object.
    return is_wildcard(pattern) and hostname.endswith(pattern[1:]) and len(hostname) > len(pattern) - 1


def hosts_meant(facts: Facts) -> tuple[Host, ...]:
    """The hosts that the diagnosis is about: all hosts, or those of one hostname; exact names before wildcards."""
    if not facts.hostname:
        return facts.hosts
    exact = tuple(host for host in facts.hosts if host.hostname == facts.hostname)
    return exact or tuple(host for host in facts.hosts if covers(host.hostname, facts.hostname))


def near_names(facts: Facts) -> tuple[str, ...]:
    """Known hostnames that are similar to the requested hostname."""
    known = sorted({host.hostname for host in facts.hosts})
    return tuple(difflib.get_close_matches(facts.hostname, known, n=_NEAR, cutoff=_CUTOFF))


def find_paths(facts: Facts) -> Paths:
    """The Services through which the connections of the hosts enter."""
    by_address = _by_address(facts.services)
    found: dict[str, list[Host]] = {}
    guessed: set[str] = set()
    unmatched = []
    for host in hosts_meant(facts):
        addresses = map(normalize_address, host.status)
        services = {by_address[address].key: None for address in addresses if address in by_address}
        if not services:
            guess = _by_class(facts, host)
            services = {guess.key: None} if guess else {}
            guessed |= services.keys()
        for key in services:
            found.setdefault(key, []).append(host)
        if not services:
            unmatched.append(host)
    by_key = {service.key: service for service in facts.services}
    paths = (Path(by_key[key], tuple(hosts), key in guessed) for key, hosts in sorted(found.items()))
    return Paths(tuple(paths), tuple(unmatched))


def _by_address(services: Iterable[Service]) -> dict[str, Service]:
    """The Services by the addresses in their status; by ClusterIP too, for a controller may publish its ClusterIP."""
    found: dict[str, Service] = {}
    for service in services:
        for text in (*service.cluster_ips, *service.external_ips):
            found.setdefault(normalize_address(text), service)
    for service in services:
        for point in service.points:
            found |= {normalize_address(text): service for text in (point.ip, point.hostname) if text}
    return found


def normalize_address(text: str) -> str:
    """An address or hostname in the form in which equal ones are equal texts."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text.lower().removesuffix(".")


def _by_class(facts: Facts, host: Host) -> Service | None:
    """The only Service of the host's controller, by its labels; None if there are none or several."""
    controllers = {one.name: one.controller for one in facts.classes}
    controller = controllers.get(host.ingress_class, "")
    names = next((names for start, names in CONTROLLERS.items() if controller.startswith(start)), ())
    fitting = [service for service in facts.services if is_controller(service, names)]
    return fitting[0] if len(fitting) == 1 else None


def is_controller(service: Service, names: Iterable[str]) -> bool:
    """Whether a Service has one of these names in its labels, and TCP ports."""
    labelled = {service.labels.get(label) for label in NAME_LABELS}
    return not labelled.isdisjoint(names) and bool(service.ports)
