"""Whether a watcher may write the ipMode of a Service, from what the watch itself shows of it.

The law: a load balancer that passes packets on with its own address as their destination is refused, whatever the user
says; an unknown one is refused without the user's word that it ends connections. Pure.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.facts.model import Service as ServiceFact
from dnsproxy.doctor.judge.ip_mode_judgement import LOOK_AT_PACKETS, judge_ip_mode
from dnsproxy.doctor.judge.providers import provider_of
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane
from dnsproxy.ip_mode.status_writers import ManagedService

# The harm does not depend on it, and a watcher does not know it.
_ANY_PLANE: Final = DataPlane("the data plane", Answer.UNKNOWN, Answer.UNKNOWN, "not asked")


def why_refused(service: ManagedService, *, scheme: str, ends_connections: bool) -> str:
    """The reason, or ``. `scheme` is that of the nodes' providerID, empty if unknown."""
    fact = _fact_of(service)
    judged = judge_ip_mode(fact, provider_of(fact, scheme), _ANY_PLANE, ends_connections=ends_connections)
    if judged.harms is Answer.YES:
        return judged.why
    if judged.harms is Answer.UNKNOWN:
        return f"{judged.why}; {LOOK_AT_PACKETS}; otherwise give --balancer-ends-connections"
    return ""


def _fact_of(service: ManagedService) -> ServiceFact:
    spec, balancer = service.spec, service.status.load_balancer if service.status else None
    return ServiceFact(
        key=f"{service.metadata.namespace}/{service.metadata.name}",
        type=(spec.type if spec else None) or "ClusterIP",
        ports=tuple(Port(one.port, one.name or "") for one in (spec.ports if spec else None) or ()),
        points=tuple(BalancerAddress(ip=one.ip or "") for one in (balancer.ingress if balancer else None) or ()),
        annotations=service.metadata.annotations or {},
        load_balancer_class=(spec.load_balancer_class if spec else None) or "",
    )
