"""Which Service is behind a subject.

The law: by evidence, in one order: the annotation, an address in the status, the owner; last, the Service of the last
decision, if it has no address any more. Never by the name of a vendor. Two candidates are none, and both are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.judge.paths import entries_of, normalize_address
from dnsproxy.doctor.judge.web_ports import web_ports
from dnsproxy.operate.decide.facts import Facts, ServiceFacts, SubjectFacts
from dnsproxy.operate.decide.last_decision import last_route

BACKEND: Final = "switchback.dev/backend"
"""The annotation of an IngressClass, Gateway or GatewayClass with the Service of its controller, `NAMESPACE/NAME`."""
_ADVICE: Final = f"annotate it with {BACKEND}: NAMESPACE/NAME"


@dataclass(frozen=True, slots=True)
class Found:
    """The Service behind a subject, or why it is not known."""

    service: ServiceFacts | None
    evidence: str


def find_controller(subject: SubjectFacts, facts: Facts) -> Found:
    """The Service behind a subject, with one line of evidence."""
    found = (
        _by_annotation(subject, facts)
        or _by_address(subject, facts)
        or _by_owner(subject, facts)
        or _without_address(subject, facts)
    )
    if found is None:
        return Found(None, f"no Service of type LoadBalancer has an address of its status, or its owner; {_ADVICE}")
    if found.service is not None and is_our_relay(found.service, facts):
        return Found(None, f"{found.service.key} is our own relay")
    return found


def _by_annotation(subject: SubjectFacts, facts: Facts) -> Found | None:
    if subject.backend is None:
        return None
    service = facts.services.get(subject.backend.strip())
    if service is None:
        return Found(None, f"{BACKEND} is {subject.backend!a}, and there is no such Service")
    if service.service.type != "LoadBalancer":
        return Found(None, f"{BACKEND} names {service.key}, which is no Service of type LoadBalancer")
    return Found(service, f"{BACKEND} names {service.key}")


def _by_address(subject: SubjectFacts, facts: Facts) -> Found | None:
    wanted = set(map(normalize_address, subject.status))
    having = [one for one in balancers(facts) if wanted.intersection(map(normalize_address, entries_of(one.service)))]
    # Services on different ports may share an address: those of k3s' klipper-lb have the nodes' addresses.
    serving = [one for one in having if web_ports(one.service.ports)] or having
    owned = [one for one in serving if one.owners & subject.owners] or serving
    return _only(owned, "has an address of its status")


def _by_owner(subject: SubjectFacts, facts: Facts) -> Found | None:
    owned = [one for one in balancers(facts) if one.owners & subject.owners and web_ports(one.service.ports)]
    shared = sorted({owner for one in owned for owner in one.owners & subject.owners})
    return _only(owned, f"belongs to {', '.join(shared)}, as it does")


def _without_address(subject: SubjectFacts, facts: Facts) -> Found | None:
    """The Service of the last decision, if its status has only hostnames now: that of the Ingresses may be older."""
    last = last_route(subject.subject, facts)
    service = facts.services.get(last.relay_to) if last is not None else None
    if service is None or service.service.type != "LoadBalancer":
        return None
    points = service.service.points
    if not points or any(point.ip for point in points):
        return None
    return Found(service, f"{service.key} was behind it, and no Service has an address of its status any more")


def _only(candidates: list[ServiceFacts], evidence: str) -> Found | None:
    if not candidates:
        return None
    if len(candidates) > 1:
        names = " and ".join(sorted(one.key for one in candidates))
        return Found(None, f"{names}: each {evidence}; {_ADVICE}")
    return Found(candidates[0], f"{candidates[0].key} {evidence}")


def is_our_relay(service: ServiceFacts, facts: Facts) -> bool:
    """Whether a Service leads to our relay: as the backend of a route it would be a loop."""
    namespace, _, name = service.key.partition("/")
    if namespace != facts.namespace:
        return False
    selects = bool(service.selector) and set(service.selector) <= set(facts.relay_selector)
    return selects or any(route.name == name and route.relay_to for route in facts.routes)


def balancers(facts: Facts) -> Iterator[ServiceFacts]:
    """The Services of type LoadBalancer."""
    return (one for _, one in sorted(facts.services.items()) if one.service.type == "LoadBalancer")


def controllers_of(facts: Facts) -> dict[str, ServiceFacts]:
    """The Services behind those subjects that have hostnames, by key: no other one is ever probed."""
    found: Iterable[ServiceFacts | None] = (
        find_controller(one, facts).service for one in facts.subjects if one.hostnames
    )
    return {one.key: one for one in found if one is not None}
