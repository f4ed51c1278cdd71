"""Whether the names of each subject go through a relay, and why.

The law: the same facts give the same decision. Nothing is steered before a handshake succeeded; what is not known
changes nothing; a subject is let go after three failures in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dnsproxy.operate.decide.controllers import addresses_of, find_controller
from dnsproxy.operate.decide.facts import (
    ControllerService,
    Facts,
    Handshake,
    Point,
    Reaction,
    RouteService,
    Subject,
    SubjectFacts,
)
from dnsproxy.operate.decide.names import service_name

FAILURES: Final = 3
"""So many failed handshakes in a row let a subject go."""


class Verdict(StrEnum):
    """What is done for a subject."""

    NOTHING = "nothing"
    LEAVE_ALONE = "leave alone"
    RELAY = "relay"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done for a subject, and the evidence."""

    subject: Subject
    verdict: Verdict
    evidence: tuple[str, ...]
    backend: ControllerService | None = None
    steer: bool = False
    """Whether its names are answered with the relay Service; before that, the relay only listens."""


def decide(facts: Facts) -> tuple[Decision, ...]:
    """One decision for each subject, in the order of the subjects."""
    return tuple(_decide_one(one, facts) for one in sorted(facts.subjects, key=lambda one: one.subject))


def last_route(subject: Subject, facts: Facts) -> RouteService | None:
    """The Service that we wrote for a subject: the last decision."""
    wanted = service_name(subject)
    return next((one for one in facts.routes if one.ours and one.name == wanted), None)


def _decide_one(one: SubjectFacts, facts: Facts) -> Decision:
    if not one.hostnames:
        return Decision(one.subject, Verdict.LEAVE_ALONE, ("it has no hostnames",))
    if _only_hostnames(one.points):
        return Decision(one.subject, Verdict.NOTHING, ("its status has only hostnames: nothing short-circuits them",))
    found = find_controller(one, facts)
    if found.service is None:
        return _unknown(one, facts, found.evidence)
    service = found.service
    if _only_hostnames(service.points):
        return Decision(
            one.subject, Verdict.NOTHING, (found.evidence, f"the status of {service.name} has only hostnames")
        )
    if not addresses_of(service.points):
        return _unknown(one, facts, found.evidence, f"the status of {service.name} has no address yet")
    if all(point.ip_mode == "Proxy" for point in service.points if point.ip):
        if facts.honours_ip_mode:
            return Decision(one.subject, Verdict.NOTHING, (found.evidence, f"{service.name} has ipMode Proxy"))
        if facts.honours_ip_mode is None:
            missing = "ipMode is Proxy, and nobody knows whether the data plane honours it"
            return _unknown(one, facts, found.evidence, missing)
    return _by_reaction(one, service, facts, found.evidence)


def _by_reaction(one: SubjectFacts, service: ControllerService, facts: Facts, evidence: str) -> Decision:
    reactions = {port: _reaction(service, port, facts) for port in sorted(set(service.ports))}
    lines = (evidence, *(f"port {port} {reaction}" for port, reaction in reactions.items()))
    if not reactions:
        return _unknown(one, facts, *lines, f"{service.name} has no TCP port")
    if set(reactions.values()) == {Reaction.PLAIN}:
        return Decision(one.subject, Verdict.NOTHING, lines)
    if set(reactions.values()) != {Reaction.HEADER}:
        return _unknown(one, facts, *lines, "missing: every port with the same, clear reaction")
    shake = facts.handshakes.get(one.subject, Handshake())
    last = last_route(one.subject, facts)
    steered = last is not None and str(one.subject) in last.subjects and last.relay_to == str(service.name)
    steer = shake.failures < FAILURES if steered else shake.succeeded and not shake.failures
    return Decision(one.subject, Verdict.RELAY, (*lines, _told(shake)), service, steer)


def _unknown(one: SubjectFacts, facts: Facts, *evidence: str) -> Decision:
    shake = facts.handshakes.get(one.subject, Handshake())
    if last_route(one.subject, facts) is None or shake.failures >= FAILURES:
        return Decision(one.subject, Verdict.LEAVE_ALONE, evidence)
    return Decision(one.subject, Verdict.KEEP, (*evidence, "the last decision stays"))


def _reaction(service: ControllerService, port: int, facts: Facts) -> Reaction:
    probe = facts.probes.get((service.name, port))
    return Reaction.INCONCLUSIVE if probe is None else probe.reaction


def _told(shake: Handshake) -> str:
    if shake.failures:
        return f"{shake.failures} handshakes in a row failed through the relay"
    return "a handshake through the relay succeeded" if shake.succeeded else "missing: a handshake through the relay"


def _only_hostnames(points: tuple[Point, ...]) -> bool:
    return bool(points) and all(point.hostname and not point.ip for point in points)
