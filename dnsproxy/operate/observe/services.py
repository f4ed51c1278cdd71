"""Services: what is kept of each Service of the cluster.

The law: a cluster may have ten thousand, so only those of type LoadBalancer, and the few that an annotation may name,
are kept as facts; of the others their ports. The doctor makes the same fact of a Service.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.operate.decide.facts import ServiceFacts
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
    external: bool = False
    """Whether it is an ExternalName, which a relay cannot dial."""
    balancer: ServiceFacts | None = None
    """None if it is not of type LoadBalancer."""


def follow_services(on_change: Callable[[], None]) -> Followed[Service, KeptService]:
    """Every Service of the cluster; its run() must be running."""
    return Followed(SERVICES, _keep, on_change)


def _keep(raw: Service) -> KeptService:
    service = make_service(raw)
    selector = (raw.spec.selector or {}) if raw.spec is not None else {}
    balancer = ServiceFacts(service, tuple(sorted(selector.items())), owners_of(raw.metadata))
    return KeptService(
        frozenset(port.port for port in service.ports),
        external=service.type == "ExternalName",
        balancer=balancer if service.type == _BALANCER else None,
    )
