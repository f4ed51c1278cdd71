"""The steering document: what is decided for each class and Gateway, with the evidence, as JSON.

The law: pure. The field names are keys of the JSON, which scripts rely on. A received document is a SteeringDocument or
a ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dnsproxy.operate.decide.decisions import Decision, is_steered, last_route
from dnsproxy.operate.decide.facts import Facts
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.plan import Plan

PATH: Final = "/steering"
LARGEST: Final = 8 << 20
"""Octets of a document."""


class SubjectRow(msgspec.Struct, frozen=True, kw_only=True):
    """One class or Gateway."""

    subject: str
    """`ingressclass/NAME` or `gateway/NAMESPACE/NAME`."""
    decision: str
    """`nothing`, `leave alone`, `relay` or `keep`."""
    steered: bool
    """Whether its names are answered with the relay Service now."""
    hostnames: int
    backend: str = ""
    """The Service of its controller, `NAMESPACE/NAME`; empty if it is not known."""
    relay: str = ""
    """The relay Service, `NAMESPACE/NAME`; empty if there is none."""
    evidence: tuple[str, ...] = ()
    """Sentences without full stops."""
    fault: str = ""
    """What is in the way of the decision."""


class RouteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One route Service."""

    service: str
    """`NAMESPACE/NAME`."""
    relay_to: str
    managed: bool
    """Whether `dnsproxy operate` writes it; all others belong to people."""
    faults: tuple[str, ...] = ()


class SteeringDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica of `dnsproxy operate` knows."""

    leads: bool
    """Whether this replica probes and writes; only its evidence has probes."""
    leader: str = ""
    """The identity of the replica that does."""
    subjects: tuple[SubjectRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    missing: tuple[str, ...] = ()
    """What was not read yet, or is not certain; nothing counts as absent meanwhile."""


_DECODER: Final = msgspec.json.Decoder(SteeringDocument)


def parse_steering(octets: bytes) -> SteeringDocument:
    """The document. Raises ValueError for any other one."""
    try:
        return _DECODER.decode(octets)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def format_steering(document: SteeringDocument) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document) + b"\n"


def subject_rows(
    facts: Facts, decisions: Iterable[Decision], plan: Plan, faults: Mapping[str, str]
) -> tuple[SubjectRow, ...]:
    """The rows of all subjects; `faults`: by name of a Service, why it could not be written."""
    stopped = dict(plan.faults)
    hostnames = {one.subject: one.hostnames for one in facts.subjects}
    rows = []
    for one in decisions:
        route = last_route(one.subject, facts)
        rows.append(
            SubjectRow(
                subject=str(one.subject),
                decision=one.verdict.value,
                steered=is_steered(one.subject, route),
                hostnames=hostnames.get(one.subject, 0),
                backend=one.backend.key if one.backend is not None else "",
                relay=f"{facts.namespace}/{route.name}" if route is not None else "",
                evidence=one.evidence,
                fault=stopped.get(one.subject, "") or faults.get(service_name(one.subject), ""),
            )
        )
    return tuple(rows)


def route_rows(facts: Facts, faults: Mapping[str, tuple[str, ...]]) -> tuple[RouteRow, ...]:
    """The rows of all route Services; `faults` by `NAMESPACE/NAME`."""
    return tuple(
        RouteRow(service=key, relay_to=one.relay_to, managed=one.ours, faults=faults.get(key, ()))
        for one in sorted(facts.routes, key=lambda one: one.name)
        if one.relay_to or faults.get(f"{facts.namespace}/{one.name}")
        for key in (f"{facts.namespace}/{one.name}",)
    )
