"""Which Service is behind a subject.

The law: by evidence, in one order: the annotation, an address in the status, the pods of the controller's owner. Never
by the name of a vendor. Two candidates are none, and both are named.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from dnsproxy.operate.decide.facts import ControllerService, Facts, Labels, Point, SubjectFacts


@dataclass(frozen=True, slots=True)
class Found:
    """The Service behind a subject, or why it is not known."""

    service: ControllerService | None
    evidence: str


def find_controller(subject: SubjectFacts, facts: Facts) -> Found:
    """The Service behind a subject, with one line of evidence."""
    found = _by_annotation(subject, facts) or _by_address(subject, facts) or _by_owner(subject, facts)
    if found is None:
        return Found(
            None, "no Service has its address or selects its controller; annotate it with switchback.dev/backend"
        )
    if found.service is not None and _is_our_relay(found.service, facts):
        return Found(None, f"{found.service.name} leads to our own relay")
    return found


def _by_annotation(subject: SubjectFacts, facts: Facts) -> Found | None:
    if subject.backend is None:
        return None
    for service in facts.services:
        if str(service.name) == subject.backend.strip():
            return Found(service, f"switchback.dev/backend names {service.name}")
    return Found(None, f"switchback.dev/backend names {subject.backend!r}, and there is no such Service")


def _by_address(subject: SubjectFacts, facts: Facts) -> Found | None:
    wanted = addresses_of(subject.points)
    having = [one for one in balancers(facts) if wanted & addresses_of(one.points)]
    return _only(having, "has the address of its status")


def _by_owner(subject: SubjectFacts, facts: Facts) -> Found | None:
    if not subject.owner_namespace:
        return None
    selecting = [
        one
        for one in balancers(facts)
        if one.name.namespace == subject.owner_namespace and selects(one.selector, subject.owner_labels)
    ]
    return _only(selecting, f"selects the pods of {subject.controller}")


def _only(candidates: list[ControllerService], evidence: str) -> Found | None:
    if not candidates:
        return None
    if len(candidates) > 1:
        names = " and ".join(sorted(str(one.name) for one in candidates))
        return Found(None, f"{names}: each {evidence}; annotate it with switchback.dev/backend")
    return Found(candidates[0], f"{candidates[0].name} {evidence}")


def _is_our_relay(service: ControllerService, facts: Facts) -> bool:
    if service.name.namespace != facts.namespace:
        return False
    names = {route.name for route in facts.routes if route.relay_to}
    return service.name.name in names or selects(service.selector, facts.relay_labels)


def balancers(facts: Facts) -> Iterable[ControllerService]:
    """The Services of type LoadBalancer."""
    return (one for one in facts.services if one.type == "LoadBalancer")


def selects(selector: Labels, labels: Labels) -> bool:
    """Whether a selector takes pods with these labels; an empty one takes none."""
    return bool(selector) and set(selector) <= set(labels)


def addresses_of(points: Iterable[Point]) -> set[str]:
    """The IP addresses in one spelling; what is no address is left out."""
    found = set()
    for point in points:
        try:
            found.add(str(ipaddress.ip_address(point.ip)))
        except ValueError:
            continue
    return found
