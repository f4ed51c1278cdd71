"""Which route Services are created, patched and deleted, so that the cluster has the decisions.

The law: equal state gives no change. A Service without our label is never changed; a name that another has is the fault
of one subject. Names leave a relay that works PARTING after pods can do without it, and their Service stays for LINGER,
because clients know its address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.operate.decide.decisions import Decision, Verdict
from dnsproxy.operate.decide.facts import Facts, ListenPort, Route, Subject
from dnsproxy.operate.decide.listen_ports import choose_ports
from dnsproxy.operate.decide.names import service_name
from dnsproxy.operate.decide.port_headers import PortState, endpoint_headers, headers_of, lent_ports, port_backends
from dnsproxy.operate.decide.port_shares import within_shares
from sidecar.kubernetes.route_services import (
    format_balancers,
    format_endpoint_headers,
    format_headers,
    format_port_backends,
)

LINGER: Final = timedelta(minutes=10)
"""Resolvers forget an answer after seconds; programs that keep addresses, such as a JVM, mostly after minutes."""
PARTING: Final = timedelta(seconds=10)
"""Until then each node sends no more connections to the pods that are gone, and honours a new ipMode."""
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
"""RFC 3339 in UTC."""


@dataclass(frozen=True, slots=True)
class Create:
    """A Service that is not there yet."""

    route: Route


@dataclass(frozen=True, slots=True)
class Patch:
    """A Service of ours that becomes another; its resourceVersion has to be the one that was read."""

    before: Route
    route: Route


@dataclass(frozen=True, slots=True)
class Delete:
    """A Service of ours that nobody needs any more; its resourceVersion has to be the one that was read."""

    route: Route


Change = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes in the order of their names, and what stops single subjects."""

    changes: tuple[Change, ...] = ()
    faults: tuple[tuple[Subject, str], ...] = ()


def plan(facts: Facts, decisions: Iterable[Decision], *, now: datetime) -> Plan:
    """The changes from the Services that were read to those that are decided; `now` in UTC."""
    current = {one.name: one for one in facts.routes}
    named, faults = _by_name(decisions, current, facts.namespace)
    wishes = {name: one for name, one in named.items() if one.verdict is Verdict.RELAY}
    relayed, lacking = within_shares(wishes, current)
    faults += [(named[name].subject, fault) for name, fault in lacking.items()]
    listen = choose_ports([(name, state.port) for name, one in relayed.items() for state in one.ports], facts.routes)
    changes: list[Change] = []
    for name in sorted({*current, *relayed}):
        before = current.get(name)
        if name in relayed:
            wanted = _wanted(name, relayed[name], before, listen, facts)
            if wanted is None:
                faults.append((relayed[name].subject, "the relay has no free port to listen on"))
            elif before is None:
                changes.append(Create(wanted))
            elif before != wanted:
                changes.append(Patch(before, wanted))
        elif before is not None and before.ours and name not in wishes:
            changes += _leave(before, named.get(name), facts, now)
    return Plan(tuple(changes), tuple(sorted(faults)))


def _by_name(
    decisions: Iterable[Decision], current: Mapping[str, Route], namespace: str
) -> tuple[dict[str, Decision], list[tuple[Subject, str]]]:
    """The decisions by the name of their Service, without those whose name another Service or subject has."""
    named: dict[str, Decision] = {}
    faults: list[tuple[Subject, str]] = []
    for one in sorted(decisions, key=lambda one: one.subject):
        name = service_name(one.subject)
        if name in named:
            faults.append((one.subject, f"{named[name].subject} has the name {name} already"))
        elif one.verdict is Verdict.RELAY and name in current and not current[name].ours:
            faults.append((one.subject, f"Service {namespace}/{name} is there, and we do not manage it; rename it"))
        else:
            named[name] = one
    return named, faults


def _wanted(
    name: str, decision: Decision, before: Route | None, listen: dict[tuple[str, int], int], facts: Facts
) -> Route | None:
    if any((name, state.port) not in listen for state in decision.ports):
        return None
    route = Route(
        name=name,
        resource_version=before.resource_version if before is not None else "",
        ours=True,
        relay_to=decision.backend.key if decision.backend is not None else "",
        port_backends=format_port_backends(port_backends(decision.ports)),
        subjects=str(decision.subject) if decision.steer else "",
        balancers=format_balancers(_balancers(decision)),
        ports=tuple(ListenPort(state.port, listen[name, state.port]) for state in decision.ports),
        selector=facts.relay_selector,
    )
    return _with_headers(route, decision.ports)


def _balancers(decision: Decision) -> set[str]:
    """The addresses in the status of the Service behind the relay."""
    points = decision.backend.service.points if decision.backend is not None else ()
    return {normalize_address(point.ip) for point in points if point.ip}


def _with_headers(route: Route, states: tuple[PortState, ...]) -> Route:
    exceptions = format_endpoint_headers(endpoint_headers(states))
    return replace(route, headers=format_headers(headers_of(states)), endpoint_headers=exceptions)


def _leave(before: Route, decision: Decision | None, facts: Facts, now: datetime) -> list[Change]:
    """What becomes of a Service of ours whose subject is not relayed now."""
    if decision is None and not facts.complete:
        # Its subject may only be missing in what was read.
        return []
    if decision is not None and decision.verdict is Verdict.KEEP:
        return _patch(before, _with_headers_of(before, decision))
    since = _parse_time(before.released, now)
    if since is not None and now - since >= LINGER:
        return [Delete(before)]
    parts = decision is not None and decision.verdict is Verdict.NOTHING
    stays = parts and (since is None or now - since < PARTING)
    after = replace(
        _with_headers_of(before, decision),
        subjects=before.subjects if stays else "",
        released=before.released if since is not None else now.strftime(_TIME),
    )
    return _patch(before, after)


def _patch(before: Route, after: Route) -> list[Change]:
    return [Patch(before, after)] if after != before else []


def _with_headers_of(before: Route, decision: Decision | None) -> Route:
    """The Service that goes on relaying, with the header that the controller takes now."""
    same = decision is not None and decision.backend is not None and decision.backend.key == before.relay_to
    if decision is None or not same:
        return before
    ports, lent = {one.port for one in before.ports}, lent_ports(before)
    own = {one.port: one for one in decision.ports if not one.backend and one.port not in lent}
    if own.keys() != ports - lent.keys():
        return before
    return _with_headers(before, (*own.values(), *lent.values()))


def _parse_time(text: str, now: datetime) -> datetime | None:
    """The time; None for an empty text, and for one to come or that is none, of which the wait begins anew."""
    try:
        since = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return since if since <= now else None
