"""The Services that --apply or --remove is about: which they are, and whether they may be.

The law: ipMode Proxy harms a load balancer that passes packets on with its own address as their destination, because
kube-proxy then has no rule for that address: connections from outside are lost. A Service of such a load balancer is
never annotated, and one of an unknown kind only on the user's word. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dnsproxy.doctor.facts.model import Service as FactsService
from dnsproxy.doctor.judge.ip_mode_judgement import LOOK_AT_PACKETS, IpModeJudgement, judge_ip_mode
from dnsproxy.doctor.judge.providers import provider_of
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane
from dnsproxy.ip_mode.changes import Refusal
from dnsproxy.ip_mode.present import Present, class_of, is_selected, modes_of, points_of, ref_of
from dnsproxy.ip_mode.selection import ANNOTATION, Selection
from sidecar.kubernetes.structs.network import Service

_LOAD_BALANCER = "LoadBalancer"


_PLANE: Final = DataPlane("the data plane", Answer.UNKNOWN, Answer.UNKNOWN, "not looked at")
"""Whether ipMode helps is the question of --check; whether it harms does not depend on the data plane."""


def selected_services(present: Present, selection: Selection) -> tuple[Service, ...]:
    """Those whose status the policy changes: named ones first, each once, of type LoadBalancer."""
    named = {ref: service for ref, service in present.named.items() if service}
    others = {ref_of(service): service for service in present.listed if is_selected(service, selection)}
    return tuple(service for service in {**named, **others}.values() if is_load_balancer(service))


def refuse_missing(present: Present) -> Iterator[Refusal]:
    """The named Services that do not exist, or have no load balancer."""
    for ref, service in present.named.items():
        if service is None:
            yield Refusal(f"Service {ref}", "does not exist")
        elif not is_load_balancer(service):
            kind = (service.spec.type if service.spec else None) or "ClusterIP"
            yield Refusal(f"Service {ref}", f"is of type {kind}: only one of type {_LOAD_BALANCER} has an ipMode")


def refuse_harmful(present: Present, selection: Selection, *, ends_connections: bool) -> Iterator[Refusal]:
    """The classes and the selected Services whose traffic from outside would be lost, or might be.

    Whoever annotated a Service decided about an unknown load balancer, but not about one that is known to do harm.
    """
    for name in selection.classes:
        provider = provider_of(FactsService(key="", load_balancer_class=name))
        if provider.passes_packets:
            why = f"is of {provider.name}, which passes packets on: its Services would lose their clients from outside"
            yield Refusal(f"loadBalancerClass {name}", why)
    chosen = set(map(ref_of, _chosen_now(present, selection)))
    others = (one for one in present.annotated or () if is_load_balancer(one))
    for ref in dict.fromkeys(map(ref_of, (*selected_services(present, selection), *others))):
        judged = judge(present.facts[ref], present.scheme, ends_connections=ends_connections)
        if judged.harms is Answer.YES:
            instead = "" if ref in chosen else f"; take away its annotation {ANNOTATION}"
            yield Refusal(f"Service {ref}", f"would lose its connections from outside: {judged.why}{instead}")
        elif judged.harms is Answer.UNKNOWN and ref in chosen:
            why = f"may lose its connections from outside: {judged.why}; {LOOK_AT_PACKETS}"
            yield Refusal(f"Service {ref}", f"{why}; if it is the node's, add --balancer-ends-connections")


def judge(service: FactsService, scheme: str, *, ends_connections: bool) -> IpModeJudgement:
    """What the Service and the nodes' providerID tell of its load balancer."""
    return judge_ip_mode(service, provider_of(service, scheme), _PLANE, ends_connections=ends_connections)


def _chosen_now(present: Present, selection: Selection) -> Iterator[Service]:
    """The Services that this command selects, by name or by class; not those that somebody annotated."""
    yield from (service for service in present.named.values() if service)
    yield from (one for one in present.listed if class_of(one) in selection.classes and is_selected(one, selection))


def deciding_providers(present: Present, services: Iterable[Service]) -> Iterator[str]:
    """The Services whose provider writes an ipMode of its own, whatever a removal writes."""
    for ref in map(ref_of, services):
        fact = present.facts[ref]
        provider = provider_of(fact, present.scheme)
        why = provider.ip_mode_auto
        if provider.ip_mode is not None and provider.ip_mode.key in fact.annotations:
            why = f"its annotation {provider.ip_mode.key} makes {provider.name} decide"
        if why:
            yield f"the provider of Service {ref} may write its ipMode with its next write: {why}"


def notes_on(services: Iterable[Service]) -> Iterator[str]:
    """What the policy cannot do for a Service."""
    for service in services:
        if not points_of(service):
            yield f"Service {ref_of(service)} has no address yet: its provider's first write will have ipMode Proxy"
        elif not modes_of(service):
            yield f"Service {ref_of(service)} has only a hostname, which has no ipMode: nothing changes for it"
        if service.spec and service.spec.external_ips:
            yield f"Service {ref_of(service)} has externalIPs, which ipMode does not cover"


def is_load_balancer(service: Service) -> bool:
    """Whether the Service has a load balancer."""
    return service.spec is not None and service.spec.type == _LOAD_BALANCER
