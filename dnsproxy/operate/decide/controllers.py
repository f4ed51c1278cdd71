"""Which Service is behind a subject.

The law: by evidence, in one order: the annotation, an address in the status, the owner. Never by the name of a vendor.
Two candidates are none, and both are named. The Service of the last decision is followed beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.web_ports import web_ports
from dnsproxy.operate.decide.facts import Facts, ServiceFacts, SubjectFacts
from dnsproxy.operate.decide.last_decision import last_route
from sidecar.values.text import cut_list, quoted

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
    found = _by_annotation(subject, facts) or _by_address(subject, facts) or _by_owner(subject, facts)
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
        return Found(None, f"{BACKEND} is {quoted(subject.backend)}, and there is no such Service")
    if service.service.type != "LoadBalancer":
        return Found(None, f"{BACKEND} names {service.key}, which is no Service of type LoadBalancer")
    return Found(service, f"{BACKEND} names {service.key}")


def _by_address(subject: SubjectFacts, facts: Facts) -> Found | None:
    wanted = list(map(normalize_address, subject.status))
    # Anybody who writes a Service may claim an external IP; a status is the cloud's.
    having = _having(facts.by_address, wanted) or _having(facts.by_external_ip, wanted)
    # Services on different ports may share an address: those of k3s' klipper-lb have the nodes' addresses.
    serving = [one for one in having if web_ports(one.service.ports)] or having
    owned = [one for one in serving if one.owners & subject.owners] or serving
    return _only(owned, "has an address of its status")


def _by_owner(subject: SubjectFacts, facts: Facts) -> Found | None:
    owned = [one for one in _having(facts.by_owner, subject.owners) if web_ports(one.service.ports)]
    shared = sorted({owner for one in owned for owner in one.owners & subject.owners})
    return _only(owned, f"belongs to {', '.join(shared)}, as it does")


def _having(index: Mapping[str, Sequence[ServiceFacts]], wanted: Iterable[str]) -> list[ServiceFacts]:
    """The Services with any of these, each once, by key."""
    found = {one.key: one for key in wanted for one in index.get(key, ())}
    return [found[key] for key in sorted(found)]


def _only(candidates: list[ServiceFacts], evidence: str) -> Found | None:
    if not candidates:
        return None
    if len(candidates) > 1:
        # Anybody may write a Service with an external IP.
        names = cut_list(sorted(one.key for one in candidates), " and ")
        return Found(None, f"{names}: each {evidence}; {_ADVICE}")
    return Found(candidates[0], f"{candidates[0].key} {evidence}")


def is_our_relay(service: ServiceFacts, facts: Facts) -> bool:
    """Whether a Service leads to our relay: as the backend of a route it would be a loop."""
    namespace, _, name = service.key.partition("/")
    if namespace != facts.namespace:
        return False
    selects = bool(service.selector) and set(service.selector) <= set(facts.relay_selector)
    return selects or any(route.name == name and route.relay_to for route in facts.routes)


def last_controller(subject: SubjectFacts, facts: Facts) -> ServiceFacts | None:
    """The Service that the relay dials for a subject by the last decision, if pods may still be led there."""
    last = last_route(subject.subject, facts)
    if last is None or last.released:
        return None
    service = facts.services.get(last.relay_to)
    led = service is not None and service.service.type == "LoadBalancer" and not is_our_relay(service, facts)
    return service if led else None


def followed_controllers(subject: SubjectFacts, facts: Facts) -> tuple[ServiceFacts, ...]:
    """The Services whose endpoints are followed and probed for a subject: the one behind it, and the last one."""
    if not subject.hostnames:
        return ()
    found = find_controller(subject, facts).service, last_controller(subject, facts)
    return tuple({one.key: one for one in found if one is not None}.values())


def controllers_of(facts: Facts) -> dict[str, ServiceFacts]:
    """The Services behind those subjects that have hostnames, by key: no other one is ever probed."""
    return {one.key: one for subject in facts.subjects for one in followed_controllers(subject, facts)}
