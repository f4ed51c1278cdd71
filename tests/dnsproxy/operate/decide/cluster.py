"""A cluster as facts: one class `nginx` behind one load balancer, and what a test changes about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dnsproxy.operate.decide.facts import (
    MANAGER,
    ControllerService,
    Facts,
    Handshake,
    Point,
    Probe,
    Reaction,
    RoutePort,
    RouteService,
    ServiceName,
    Subject,
    SubjectFacts,
)
from dnsproxy.operate.decide.names import service_name

NGINX = Subject("nginx")
NAME = ServiceName("ingress-nginx", "ingress-nginx-controller")
VIP = (Point(ip="192.0.2.10"),)
HOSTNAME = (Point(hostname="lb.example.org"),)
SUCCEEDED = Handshake(succeeded=True)
SERVICE = ControllerService(NAME, ports=(80, 443), points=VIP, selector=(("app", "nginx"),))
CLASS = SubjectFacts(NGINX, hostnames=2, examples=("app.example.org",), points=VIP, controller="k8s.io/ingress-nginx")


def probes_of(reaction: Reaction, *names: ServiceName) -> dict[tuple[ServiceName, int], Probe]:
    """Ports 80 and 443 of these Services with one reaction."""
    return {(name, port): Probe(reaction) for name in (names or (NAME,)) for port in (80, 443)}


def route_of(subject: Subject = NGINX, *, steered: bool = True, to: ServiceName = NAME) -> RouteService:
    """The Service that operate wrote for a subject."""
    ports = (RoutePort(80, 20080), RoutePort(443, 20443))
    subjects = (str(subject),) if steered else ()
    return RouteService(service_name(subject), "7", MANAGER, str(to), subjects=subjects, ports=ports)


def cluster(one: SubjectFacts = CLASS, service: ControllerService = SERVICE, **changes: Any) -> Facts:
    """Facts of a cluster where the controller demands the header, with these changes."""
    facts = Facts(
        "switchback", (("app", "relay"),), (one,), (service,), probes=probes_of(Reaction.HEADER), complete=True
    )
    return replace(facts, **changes)
