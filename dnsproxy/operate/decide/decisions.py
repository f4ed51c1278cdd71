"""Whether the names of each subject go through a relay, and why.

The law: the same facts give the same decision. Nothing is steered before a handshake succeeded; what is not known
changes nothing; a subject is let go after three failures in a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from dnsproxy.dns.addresses import is_address
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane, ShortCircuit, short_circuit
from dnsproxy.operate.decide.controllers import find_controller, last_controller
from dnsproxy.operate.decide.facts import Facts, Handshake, Route, ServiceFacts, Subject, SubjectFacts
from dnsproxy.operate.decide.last_decision import is_steered, last_route, subjects_of
from dnsproxy.operate.decide.port_headers import NO_HEADER, Demand, PortState, own_headers, own_headers_of, port_states
from sidecar.values.text import cut_list

FAILURES: Final = 3
"""So many failed handshakes in a row let a subject go."""
_TOLD_LAST: Final = {Demand.CLOSED: 1, Demand.UNKNOWN: 2}
UNKNOWN_PLANE: Final = DataPlane("an unknown data plane", Answer.UNKNOWN, Answer.UNKNOWN, "not read yet")


class Verdict(StrEnum):
    """What is done for a subject."""

    NOTHING = "nothing"
    """Pods reach it without us: its names are not claimed."""
    LEAVE_ALONE = "leave alone"
    """Something is missing to decide, and nothing was decided before: its names are not claimed."""
    RELAY = "relay"
    KEEP = "keep"
    """Something is missing to decide, and the last decision stays."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done for a subject, and the evidence."""

    subject: Subject
    verdict: Verdict
    evidence: tuple[str, ...]
    """Sentences without full stops, the deciding one last; may contain text from the cluster."""
    backend: ServiceFacts | None = None
    """The Service of its controller, if it is known."""
    ports: tuple[PortState, ...] = ()
    steer: bool = False
    """Whether its names are answered with the relay Service; before that, the relay only listens."""
    waits: bool = False
    """Whether a user can act on what is missing."""


def decide(facts: Facts) -> tuple[Decision, ...]:
    """One decision for each subject, in the order of the subjects."""
    return tuple(_decide_one(one, facts) for one in sorted(facts.subjects, key=lambda one: one.subject))


def handshake_of(subject: Subject, relay_to: str, facts: Facts, *, headers: str | None = None) -> Handshake:
    """What was seen through the relay Service that is there now to this backend, with these headers or its own."""
    route = last_route(subject, facts)
    uid, own = (route.uid, own_headers_of(route)) if route is not None else ("", "")
    none = Handshake(relay_to, uid=uid, headers=own if headers is None else headers)
    return through(facts.handshakes.get(subject), none)


def through(seen: Handshake | None, none: Handshake) -> Handshake:
    """The same, of what was last seen, else none; another backend, Service or header shows nothing of this one."""
    same = seen is not None and (seen.relay_to, seen.uid, seen.headers) == (none.relay_to, none.uid, none.headers)
    return seen if seen is not None and same else none


def _decide_one(one: SubjectFacts, facts: Facts) -> Decision:
    if not one.hostnames:
        return Decision(one.subject, Verdict.LEAVE_ALONE, ("it has no hostnames",))
    theirs = next((r for r in facts.routes if not r.ours and str(one.subject) in subjects_of(r)), None)
    if theirs is not None:
        why = f"Service {facts.namespace}/{theirs.name}, which we do not manage, answers for it"
        return Decision(one.subject, Verdict.LEAVE_ALONE, (why,))
    found = find_controller(one, facts)
    if found.service is None:
        if one.status and not any(map(is_address, one.status)):
            text = f"its status has only hostnames ({cut_list(one.status)})"
            if not any(map(is_address, facts.by_address)):
                return Decision(one.subject, Verdict.NOTHING, (f"{text}: nothing short-circuits them",))
            # A controller may publish a hostname for an address that its Service still has.
            return _unknown(one, facts, None, text, found.evidence)
        return _unknown(one, facts, None, found.evidence)
    short = _short_circuit(found.service, facts)
    return _by_short_circuit(one, found.service, short, facts, found.evidence)


def _short_circuit(service: ServiceFacts, facts: Facts) -> ShortCircuit:
    """The same as of the doctor, and unknown as long as the data plane was not read: it may intercept nothing."""
    if facts.plane is not None:
        return short_circuit(service.service, facts.plane)
    short = short_circuit(service.service, replace(UNKNOWN_PLANE, why=facts.why_no_plane or UNKNOWN_PLANE.why))
    return replace(short, state=Answer.UNKNOWN) if short.state is Answer.YES else short


def _by_short_circuit(
    one: SubjectFacts, service: ServiceFacts, short: ShortCircuit, facts: Facts, evidence: str
) -> Decision:
    lines = (evidence, *short.evidence)
    if short.empty:
        return _unknown(one, facts, service, *lines)
    if short.state is Answer.NO:
        return Decision(one.subject, Verdict.NOTHING, (*lines, "pods are not short-circuited to it"), service)
    if short.state is Answer.UNKNOWN:
        reached = facts.balancers.get(service.key)
        if reached is None:
            return _unknown(one, facts, service, *lines, "whether pods are short-circuited to it is not known")
        if reached:
            return Decision(one.subject, Verdict.NOTHING, (*lines, "pods reach its load balancer"), service)
        lines = (*lines, "a bare connection to its load balancer is not answered")
    return _by_ports(one, service, facts, lines)


def _by_ports(one: SubjectFacts, service: ServiceFacts, facts: Facts, lines: tuple[str, ...]) -> Decision:
    last = last_route(one.subject, facts)
    states = port_states(service, facts, last=last)
    web = [state for state in states if state.tls is not None]
    told = sorted(states, key=lambda state: _TOLD_LAST.get(state.demand, 0))
    known = (*lines, *(state.evidence for state in told if state.demand is not Demand.UNKNOWN))
    unknown = tuple(state.evidence for state in told if state.demand is Demand.UNKNOWN)
    lines = (*known, *unknown)
    demands = {state.demand for state in web}
    if Demand.HEADER in demands:
        kept_out = _kept_out(one, service, facts, lines, states)
        shake = handshake_of(one.subject, service.key, facts, headers=own_headers(states))
        steers, evidence = _steers(one, last, shake), (*known, _told(shake), *unknown)
        waits = any(state.mute and state.demand is Demand.UNKNOWN for state in web)
        return kept_out or Decision(one.subject, Verdict.RELAY, evidence, service, states, steers, waits=waits)
    if not web:
        return _unknown(one, facts, service, *lines, "it has no port for HTTP or TLS")
    if Demand.PLAIN in demands and not unknown and not any(map(_is_down, web)):
        return Decision(one.subject, Verdict.NOTHING, (*lines, "pods reach it without the header"), service, states)
    return _unknown(one, facts, service, *lines, states=states)


def _is_down(state: PortState) -> bool:
    """Whether a port accepts no connection that took the header before: a container may just start again."""
    return state.demand is Demand.CLOSED and state.header != NO_HEADER


def _kept_out(
    one: SubjectFacts, service: ServiceFacts, facts: Facts, lines: tuple[str, ...], states: tuple[PortState, ...]
) -> Decision | None:
    """The decision where source ranges leave pods out: kube-proxy drops them, and the relay would lead every one in."""
    if not service.limited_families:
        return None
    ranges = f"its loadBalancerSourceRanges ({cut_list(service.service.source_ranges)})"
    if not facts.relay_endpoints:
        why = f"whether {ranges} let pods in shows once the relay has a pod"
        return _unknown(one, facts, service, *lines, why, states=states)
    if service.lets_in(facts.relay_endpoints):
        return None
    why = f"{ranges} leave pods out, which the relay would lead past them; add the pods' addresses to let pods in"
    return Decision(one.subject, Verdict.LEAVE_ALONE, (*lines, why), service, states, waits=True)


def _steers(one: SubjectFacts, last: Route | None, shake: Handshake) -> bool:
    if last is None:
        return False
    if is_steered(one.subject, last) and last.relay_to == shake.relay_to:
        return shake.failures < FAILURES
    return shake.succeeded and not shake.failures


def _unknown(
    one: SubjectFacts,
    facts: Facts,
    service: ServiceFacts | None,
    *evidence: str,
    states: tuple[PortState, ...] = (),
) -> Decision:
    last = last_route(one.subject, facts)
    if last is None or last.released:
        return Decision(one.subject, Verdict.LEAVE_ALONE, evidence, service, states, waits=True)
    over = _why_over(last, facts)
    if over:
        return Decision(one.subject, Verdict.NOTHING, (*evidence, over))
    return _keep(one, last, facts, evidence)


def _why_over(last: Route, facts: Facts) -> str:
    """Why nothing short-circuits the address of the last decision's Service any more; empty if that is not certain."""
    known = facts.services.get(last.relay_to)
    if known is None:
        return f"Service {last.relay_to} was behind it, and is gone" if facts.complete else ""
    if known.service.type != "LoadBalancer":
        return f"{known.key} was behind it, and is no Service of type LoadBalancer any more"
    points = known.service.points
    if points and not any(point.ip for point in points):
        # A controller writes the statuses of its Ingresses some time after the cloud has written that of its Service.
        return f"{known.key} was behind it, and its status has only hostnames now"
    return ""


def _keep(one: SubjectFacts, last: Route, facts: Facts, evidence: tuple[str, ...]) -> Decision:
    """The last decision, while its way still works: the relay follows the controller, and handshakes go on."""
    service = last_controller(one, facts)
    states = port_states(service, facts, last=last) if service is not None else ()
    shake = handshake_of(one.subject, last.relay_to, facts)
    if shake.failures >= FAILURES:
        lines = (*evidence, _told(shake))
        return Decision(one.subject, Verdict.LEAVE_ALONE, lines, service, states, waits=True)
    *before, cause = evidence
    told = [_told(shake)] if shake.failures else []
    lines = (*before, *told, "the last decision stays", cause)
    kept = is_steered(one.subject, last)
    return Decision(one.subject, Verdict.KEEP, lines, service, states, kept, waits=True)


def _told(shake: Handshake) -> str:
    detail = f" ({shake.detail})" if shake.detail else ""
    if shake.failures:
        times = "a handshake" if shake.failures == 1 else f"{shake.failures} handshakes in a row"
        return f"{times} through the relay failed{detail}"
    return (
        f"a handshake through the relay succeeded{detail}" if shake.succeeded else "no handshake through the relay yet"
    )
