"""Services: what is kept of each Service of the cluster.

The law: a cluster may have ten thousand, so only those of type LoadBalancer are kept as facts; of the others their type
and ports. The doctor makes the same fact of a Service.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.doctor.facts.model import Service as Fact
from dnsproxy.operate.decide.facts import Route, ServiceFacts, SubjectFacts
from dnsproxy.operate.observe.followed import Followed
from dnsproxy.operate.observe.owners import owners_of
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.structs.network import Service

SERVICES: Final = Collection("Service", "/api/v1/services", Service)
"""Of all namespaces. RBAC: list and watch services."""
_BALANCER: Final = "LoadBalancer"


@dataclass(frozen=True, slots=True)
class KeptService:
    """A Service of the cluster."""

    ports: frozenset[int]
    """Its TCP ports."""
    type: str = ""
    balancer: ServiceFacts | None = None
    """None if it is not of type LoadBalancer."""

    @property
    def external(self) -> bool:
        """Whether it is an ExternalName, which a relay cannot dial."""
        return self.type == "ExternalName"


def follow_services(on_change: Callable[[], None]) -> Followed[Service, KeptService]:
    """Every Service of the cluster; its run() must be running."""
    return Followed(SERVICES, _keep, on_change)


def service_facts(
    services: Mapping[str, KeptService], routes: Iterable[Route], subjects: Iterable[SubjectFacts]
) -> dict[str, ServiceFacts]:
    """Those of type LoadBalancer; and of the others that a route or an annotation names, the type."""
    found = {key: one.balancer for key, one in services.items() if one.balancer is not None}
    named = {one.relay_to for one in routes} | {one.backend.strip() for one in subjects if one.backend is not None}
    for key in named - found.keys():
        if key in services:
            found[key] = ServiceFacts(Fact(key, type=services[key].type))
    return found


def _keep(raw: Service) -> KeptService:
    service = make_service(raw)
    selector = (raw.spec.selector or {}) if raw.spec is not None else {}
    balancer = ServiceFacts(service, tuple(sorted(selector.items())), owners_of(raw.metadata))
    return KeptService(
        frozenset(port.port for port in service.ports),
        type=sys.intern(service.type),
        balancer=balancer if service.type == _BALANCER else None,
    )
