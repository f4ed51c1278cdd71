"""Which route Services are created, patched and deleted, so that the cluster has the decisions.

The law: equal state gives no change; a Service without our label is never changed; a name that somebody else has is the
fault of one subject. Writes are guarded by the resourceVersion that was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dnsproxy.operate.decide.decisions import Decision, Verdict
from dnsproxy.operate.decide.facts import LABEL, MANAGER, Facts, RoutePort, RouteService, Subject
from dnsproxy.operate.decide.listen_ports import choose_ports
from dnsproxy.operate.decide.names import service_name
from sidecar.kubernetes.route_services import FOR, PROXY_PROTOCOL, RELAY_TO


@dataclass(frozen=True, slots=True)
class Create:
    """A Service that is not there yet."""

    route: RouteService


@dataclass(frozen=True, slots=True)
class Patch:
    """A Service of ours that becomes another; its `resource_version` has to be the one that was read."""

    route: RouteService


@dataclass(frozen=True, slots=True)
class Delete:
    """A Service of ours whose subject is not relayed."""

    name: str
    resource_version: str


Change = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes in the order of their names, and what stops single subjects."""

    changes: tuple[Change, ...]
    faults: tuple[tuple[Subject, str], ...] = ()


def plan(facts: Facts, decisions: Iterable[Decision]) -> Plan:
    """The changes from the Services that were read to those that are decided."""
    current = {one.name: one for one in facts.routes}
    kept: dict[str, Decision] = {}
    faults = []
    for decision in sorted(decisions, key=lambda one: one.subject):
        name = service_name(decision.subject)
        if decision.verdict not in {Verdict.RELAY, Verdict.KEEP}:
            continue
        if (foreign := current.get(name)) is not None and not foreign.ours:
            faults.append((decision.subject, f"Service {facts.namespace}/{name} is not ours; rename it"))
        elif name in kept:
            faults.append((decision.subject, f"{kept[name].subject} has the name {name} already"))
        else:
            kept[name] = decision
    wanted, full = _wanted(facts, current, kept)
    changes = [change for name in sorted({*current, *wanted}) if (change := _change(name, current, wanted)) is not None]
    removed = _removable(facts, kept, current)
    changes += [Delete(one.name, one.resource_version) for one in removed]
    return Plan(tuple(changes), (*faults, *full))


def _wanted(
    facts: Facts, current: dict[str, RouteService], kept: dict[str, Decision]
) -> tuple[dict[str, RouteService], list[tuple[Subject, str]]]:
    relayed = {name: one for name, one in kept.items() if one.verdict is Verdict.RELAY and one.backend is not None}
    needed = {
        (str(one.backend.name), port, "v1") for one in relayed.values() if one.backend for port in one.backend.ports
    }
    fixed = [
        one for one in facts.routes if one.relay_to and one.name not in relayed and (not one.ours or one.name in kept)
    ]
    chosen = choose_ports(needed, fixed=fixed, ours=[current[name] for name in sorted(relayed) if name in current])
    wanted, full = {}, []
    for name, one in relayed.items():
        if one.backend is None:
            continue
        keys = [(str(one.backend.name), port, "v1") for port in sorted(set(one.backend.ports))]
        if any(key not in chosen for key in keys):
            full.append((one.subject, "the relay has no free port to listen on"))
            continue
        wanted[name] = RouteService(
            name=name,
            resource_version=current[name].resource_version if name in current else "",
            managed_by=MANAGER,
            relay_to=str(one.backend.name),
            subjects=(str(one.subject),) if one.steer else (),
            ports=tuple(RoutePort(key[1], chosen[key]) for key in keys),
            selector=tuple(sorted(facts.relay_labels)),
        )
    return wanted, full


def _change(name: str, current: dict[str, RouteService], wanted: dict[str, RouteService]) -> Change | None:
    if name not in wanted:
        return None
    if name not in current:
        return Create(wanted[name])
    return Patch(wanted[name]) if current[name] != wanted[name] else None


def _removable(facts: Facts, kept: dict[str, Decision], current: dict[str, RouteService]) -> list[RouteService]:
    """Ours that nobody needs; while a list is missing, only those of subjects that were read."""
    known = {service_name(one.subject) for one in facts.subjects}
    return [
        one
        for name, one in sorted(current.items())
        if one.ours and name not in kept and (facts.complete or name in known)
    ]


def manifest_of(route: RouteService, *, namespace: str) -> dict[str, Any]:
    """The Service as the API server takes it; both families where the cluster has both."""
    annotations = {RELAY_TO: route.relay_to, PROXY_PROTOCOL: route.header}
    if route.subjects:
        annotations[FOR] = ",".join(route.subjects)
    ports = [
        {"name": f"port-{one.port}", "port": one.port, "targetPort": one.target_port, "protocol": "TCP"}
        for one in route.ports
    ]
    metadata: dict[str, Any] = {
        "name": route.name,
        "namespace": namespace,
        "labels": {LABEL: MANAGER},
        "annotations": annotations,
    }
    if route.resource_version:
        metadata["resourceVersion"] = route.resource_version
    spec = {"selector": dict(route.selector), "ipFamilyPolicy": "PreferDualStack", "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
