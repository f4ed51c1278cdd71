"""A cluster as facts: one class `nginx` behind one load balancer, and what a test changes about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from msgspec.structs import replace as with_fields

from dnsproxy.doctor.facts.model import BalancerAddress, Port, Service
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane
from dnsproxy.operate.decide.facts import (
    Facts,
    Handshake,
    ListenPort,
    Place,
    Probed,
    Route,
    ServiceFacts,
    Subject,
    SubjectFacts,
)
from dnsproxy.operate.decide.names import service_name
from sidecar.values.endpoints import Endpoint

NGINX: Final = Subject("nginx")
GATEWAY: Final = Subject("web", "infra")
KEY: Final = "ingress-nginx/ingress-nginx-controller"
VIP: Final = (BalancerAddress("192.0.2.10"),)
PROXY: Final = (BalancerAddress("192.0.2.10", ip_mode="Proxy"),)
HOSTNAME: Final = (BalancerAddress(hostname="lb.example.org"),)
PODS: Final = ("10.0.0.1", "10.0.0.2")
SELECTOR: Final = (("app.kubernetes.io/name", "relay"),)
HONOURS: Final = DataPlane("kube-proxy 1.36.3", Answer.YES, Answer.YES, "DaemonSet kube-system/kube-proxy")
IGNORES: Final = DataPlane("Cilium v1.16.0", Answer.YES, Answer.NO, "DaemonSet kube-system/cilium")
SUCCEEDED: Final = Handshake(KEY, succeeded=True, headers="v1")
CLASS: Final = SubjectFacts(NGINX, hostnames=2, examples=("app.example.org",), status=("192.0.2.10",))


def endpoints_of(ports: Iterable[int], pods: Iterable[str] = PODS) -> dict[int, tuple[Endpoint, ...]]:
    """Pods that listen at the port of the Service plus 8000."""
    return {port: tuple(Endpoint(pod, port + 8000) for pod in pods) for port in ports}


def service(key: str = KEY, **changes: Any) -> ServiceFacts:
    """A LoadBalancer Service with 80 and 443 at 192.0.2.10, and two pods."""
    ports = changes.pop("ports", (Port(80, "http"), Port(443, "https")))
    outer = {name: changes.pop(name) for name in ("selector", "owners", "endpoints") if name in changes}
    made = Service(key, type="LoadBalancer", cluster_ips=("10.96.1.1",), ports=ports, points=VIP)
    facts = ServiceFacts(with_fields(made, **changes), endpoints=endpoints_of(port.port for port in ports))
    return replace(facts, **outer)


SERVICE: Final = service()


def probed(mode: HeaderMode, *, versions: tuple[str, ...] | None = None) -> Probed:
    understood = ("v1", "v2") if mode in (HeaderMode.REQUIRES, HeaderMode.ACCEPTS) else ()
    return Probed(mode, understood if versions is None else versions)


def probes_of(
    *services: ServiceFacts, mode: HeaderMode = HeaderMode.REQUIRES, **by_port: HeaderMode
) -> dict[Place, Probed]:
    """Every endpoint of these Services with one reaction; `p80=` another one for a port."""
    return {
        (one.key, port, endpoint): probed(by_port.get(f"p{port}", mode))
        for one in services or (SERVICE,)
        for port, found in (one.endpoints or {}).items()
        for endpoint in found
    }


def route_of(subject: Subject = NGINX, *, steered: bool = True, to: str = KEY, **changes: Any) -> Route:
    """The Service that operate wrote for a subject."""
    route = Route(
        service_name(subject),
        "7",
        ours=True,
        relay_to=to,
        headers="v1",
        subjects=str(subject) if steered else "",
        ports=(ListenPort(80, 20080), ListenPort(443, 20443)),
        selector=SELECTOR,
    )
    return replace(route, **changes)


def by_key(*services: ServiceFacts) -> Mapping[str, ServiceFacts]:
    return {one.key: one for one in services}


def cluster(one: SubjectFacts = CLASS, /, *services: ServiceFacts, **changes: Any) -> Facts:
    """Facts of a cluster where the controller demands the header, with these changes."""
    found = services or (SERVICE,)
    facts = Facts(
        "switchback",
        SELECTOR,
        ("10.0.9.1",),
        subjects=(one,),
        services=by_key(*found),
        plane=HONOURS,
        probes=probes_of(*found),
        complete=True,
    )
    return replace(facts, **changes)
