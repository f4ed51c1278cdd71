"""Attachment: which listeners a route attaches to through one of its parentRefs, or why it attaches to none.

The law: as in the specification, and from the specs of the objects alone: a status may be late or missing. The
listeners of a ListenerSet are reached only through the ListenerSet, never through its Gateway.
https://gateway-api.sigs.k8s.io/reference/spec/#parentreference and GEP-1713
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.gateway.facts import Facts, GatewayFacts, ListenerSetFacts, ParentRef
from dnsproxy.sources.gateway.kinds import Ref
from dnsproxy.sources.gateway.listeners import Listener
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal
from sidecar.values.text import quoted


@dataclass(frozen=True, slots=True)
class Parent:
    """Listeners that routes may attach to, and the Gateway that opens them."""

    ref: Ref
    listeners: tuple[Listener, ...]
    gateway: GatewayFacts
    target: str | None
    """The target that the ListenerSet chose, or else the Gateway."""
    target_from: str
    """The namespace of the object that chose it."""
    created: str
    """The creation time of the object that has the listeners, in the form of Origin.created."""


def find_parent(ref: Ref, graph: ObjectGraph, *, classes: Set[str]) -> Parent | Refusal:
    """The listeners of a Gateway or ListenerSet. `classes`: those of the Gateways that count; empty: all."""
    facts = graph.get(ref)
    unusable = _unusable(ref, facts)
    if unusable is not None:
        return unusable
    match facts:
        case GatewayFacts() if classes and facts.class_name not in classes:
            return Refusal(f"{ref} has class {facts.class_name}, which --gateway-class excludes", deliberate=True)
        case GatewayFacts():
            return Parent(ref, facts.listeners, facts, facts.annotations.target, ref.namespace, facts.origin.created)
        case ListenerSetFacts(gateway=Ref() as gateway):
            return _through_gateway(ref, facts, find_parent(gateway, graph, classes=classes), graph)
        case _:
            return Refusal(f"{ref} has no Gateway as its parent")


def attach(
    route: Origin, ref: ParentRef, parent: Parent, *, labels: Mapping[str, str] | None
) -> tuple[Listener, ...] | Refusal:
    """The listeners of a parent that accept a route, whatever its hostnames: at least one.

    `labels`: those of the route's namespace; None if unknown.
    """
    meant = [one for one in parent.listeners if _is_meant(one, ref)]
    if not meant:
        return Refusal(f"{parent.ref} has no listener{_format_section(ref)}")
    fitting = [one for one in meant if route.kind in one.kinds]
    if not fitting:
        return Refusal(f"{parent.ref} has no listener{_format_section(ref)} that takes {route.kind}s")
    home = parent.ref.namespace
    refusals = [one.admission.refusal(route.namespace, home=home, labels=labels) for one in fitting]
    open_to = tuple(one for one, refusal in zip(fitting, refusals, strict=True) if refusal is None)
    return open_to or Refusal(f"listener {quoted(fitting[0].name)} of {parent.ref}: {refusals[0]}")


def _unusable(ref: Ref, facts: Facts | None) -> Refusal | None:
    """Why nothing attaches to this object itself."""
    if facts is None:
        return Refusal(f"{ref} does not exist")
    if not isinstance(facts, GatewayFacts | ListenerSetFacts):
        return Refusal(f"{ref} is unreadable")
    exclusion = facts.annotations.exclusion
    return Refusal(f"{ref} {exclusion}", facts.annotations.ignored) if exclusion is not None else None


def _through_gateway(
    ref: Ref, facts: ListenerSetFacts, gateway: Parent | Refusal, graph: ObjectGraph
) -> Parent | Refusal:
    if isinstance(gateway, Refusal):
        return Refusal(f"{ref}: {gateway.reason}", gateway.deliberate)
    admission = gateway.gateway.listener_sets
    reason = admission.refusal(ref.namespace, home=gateway.ref.namespace, labels=graph.labels_of(ref.namespace))
    if reason is not None:
        return Refusal(f"{gateway.ref} refuses {ref}: {reason} (allowedListeners)")
    own = facts.annotations.target
    chosen = (own, ref.namespace) if own is not None else (gateway.target, gateway.target_from)
    return Parent(ref, facts.listeners, gateway.gateway, *chosen, facts.origin.created)


def _is_meant(listener: Listener, ref: ParentRef) -> bool:
    return ref.section in (None, listener.name) and ref.port in (None, listener.port)


def _format_section(ref: ParentRef) -> str:
    name = f" {quoted(ref.section)}" if ref.section is not None else ""
    return f"{name} on port {ref.port}" if ref.port is not None else name
