"""The rows of the steering document, from facts and decisions.

The law: pure; the document shows what is in the cluster now beside what is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dnsproxy.admin.steering_document import RouteRow, SubjectRow
from dnsproxy.operate.decide.decisions import Decision
from dnsproxy.operate.decide.facts import Facts
from dnsproxy.operate.decide.last_decision import is_steered, last_route
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.plan import Plan


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
                undecided=one.waits,
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
