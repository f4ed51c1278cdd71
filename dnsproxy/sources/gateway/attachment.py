"""Attachment: which listeners a route gets to through one of its parentRefs, or why it gets to none.

The law: as the specification has it, from what the objects say alone: a status may be late, or written by nobody. A
ListenerSet's listeners are reached through the ListenerSet only, never through its Gateway.
https://gateway-api.sigs.k8s.io/reference/spec/#parentreference and GEP-1713
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.gateway.facts import Facts, GatewayFacts, ListenerSetFacts, ParentRef
from dnsproxy.sources.gateway.kinds import Ref
from dnsproxy.sources.gateway.listeners import Listener
from dnsproxy.sources.gateway.object_graph import State
from sidecar.text import quoted


@dataclass(frozen=True, slots=True)
class Parent:
    """Listeners that routes may attach to, and the Gateway that opens them."""

    ref: Ref
    listeners: tuple[Listener, ...]
    gateway: GatewayFacts
    target: str | None
    """That the ListenerSet or else the Gateway chose."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing can be reached this way, as a part of a sentence."""

    reason: str
    deliberate: bool = False
    """As Rejection.deliberate."""


def find_parent(ref: Ref, state: State, *, classes: Set[str]) -> Parent | Refusal:
    """The listeners of a Gateway or ListenerSet. `classes`: of the Gateways that count; empty: all do."""
    facts = state.get(ref)
    refusal = _refusal(ref, facts)
    if refusal is not None:
        return refusal
    match facts:
        case GatewayFacts() if classes and facts.class_name not in classes:
            return Refusal(f"{ref} has class {facts.class_name}, which --gateway-class leaves out", deliberate=True)
        case GatewayFacts():
            return Parent(ref, facts.listeners, facts, facts.marks.target)
        case ListenerSetFacts(gateway=Ref() as gateway):
            return _through_gateway(ref, facts, find_parent(gateway, state, classes=classes), state)
        case _:
            return Refusal(f"{ref} has no Gateway as its parent")


def attach(
    route: Origin, ref: ParentRef, parent: Parent, *, labels: Mapping[str, str] | None
) -> tuple[Listener, ...] | Refusal:
    """The listeners of a parent that take a route, whatever its hostnames: at least one. `labels`: of its namespace."""
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


def _refusal(ref: Ref, facts: Facts | None) -> Refusal | None:
    """Why nobody attaches to this object itself."""
    if facts is None:
        return Refusal(f"{ref} is not there")
    if not isinstance(facts, GatewayFacts | ListenerSetFacts):
        return Refusal(f"{ref} is unreadable")
    bar = facts.marks.bar
    return Refusal(f"{ref} {bar}", facts.marks.ignored) if bar is not None else None


def _through_gateway(ref: Ref, facts: ListenerSetFacts, gateway: Parent | Refusal, state: State) -> Parent | Refusal:
    if isinstance(gateway, Refusal):
        return Refusal(f"{ref}: {gateway.reason}", gateway.deliberate)
    admission = gateway.gateway.listener_sets
    reason = admission.refusal(ref.namespace, home=gateway.ref.namespace, labels=state.labels_of(ref.namespace))
    if reason is not None:
        return Refusal(f"{gateway.ref} refuses {ref}: {reason} (allowedListeners)")
    return Parent(ref, facts.listeners, gateway.gateway, facts.marks.target or gateway.target)


def _is_meant(listener: Listener, ref: ParentRef) -> bool:
    return ref.section in (None, listener.name) and ref.port in (None, listener.port)


def _format_section(ref: ParentRef) -> str:
    name = f" {quoted(ref.section)}" if ref.section is not None else ""
    return f"{name} on port {ref.port}" if ref.port is not None else name
