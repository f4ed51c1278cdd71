"""Binding: which Gateways a VirtualService is bound to, or why to none.

The law: from the specs of the objects alone. "A VirtualService must be bound to the gateway and must have one or more
hosts that match the hosts specified in a server"; "only virtual services exported to the gateway's namespace" count.
https://istio.io/latest/docs/reference/config/networking/gateway/#Server

The gateway's namespace is that of its Gateway here, as in Istio's documentation. Its pods, which no object here names,
may be in another.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from dnsproxy.sources.istio.facts import GatewayFacts, VirtualServiceFacts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY
from dnsproxy.sources.istio.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal
from sidecar.values.text import quoted

_EGRESS: Final = frozenset({"istio=egressgateway", "app=istio-egressgateway"})
"""Labels of the pods through which a mesh leaves the cluster: the hosts of their Gateways are names of other parties,
which must not be answered here unless a user says so.
https://istio.io/latest/docs/tasks/traffic-management/egress/egress-gateway/"""


def find_gateway(key: str, graph: ObjectGraph, *, classes: Set[str]) -> GatewayFacts | Refusal:
    """A Gateway that counts. `classes`: the selectors that count; empty: all but those for egress."""
    facts = graph.gateway(key)
    if not isinstance(facts, GatewayFacts):
        return Refusal(f"{ISTIO_GATEWAY} {key} {'does not exist' if facts is None else 'is unreadable'}")
    return _exclusion(facts, classes) or facts


def bind(service: VirtualServiceFacts, key: str, graph: ObjectGraph, *, classes: Set[str]) -> GatewayFacts | Refusal:
    """A Gateway that a VirtualService names, if some of its hosts admit the VirtualService, whatever its hosts."""
    gateway = find_gateway(key, graph, classes=classes)
    if isinstance(gateway, Refusal):
        return gateway
    namespace = service.origin.namespace
    if gateway.origin.namespace not in service.exported_to:
        return Refusal(f"it is not exported to namespace {gateway.origin.namespace} of {gateway.key} (exportTo)")
    if not gateway.hosts.admit(namespace):
        return Refusal(f"no server of {gateway.key} has a host for namespace {namespace}")
    return gateway


def unbound(service: VirtualServiceFacts) -> Refusal | None:
    """Why a VirtualService is bound to no Gateway, whatever the Gateways are."""
    exclusion = service.annotations.exclusion
    if exclusion is not None:
        return Refusal(f"it {exclusion}", service.annotations.ignored)
    if service.is_delegate:
        return Refusal("it has no hosts: other VirtualServices include it (delegate)", deliberate=True)
    if service.gateways:
        return None
    if service.in_mesh:
        return Refusal("it is for the mesh alone: it names no Gateway", deliberate=True)
    return Refusal("it names no valid Gateway")


def _exclusion(gateway: GatewayFacts, classes: Set[str]) -> Refusal | None:
    """Why a Gateway does not count."""
    exclusion = gateway.annotations.exclusion
    if exclusion is not None:
        return Refusal(f"{gateway.key} {exclusion}", gateway.annotations.ignored)
    shown = f"{gateway.key} has the selector {quoted(gateway.class_name)}"
    if classes and gateway.class_name not in classes:
        return Refusal(f"{shown}, which --class-of excludes", deliberate=True)
    if not classes and not _EGRESS.isdisjoint(gateway.class_name.split(",")):
        return Refusal(f"{shown}, which is for egress: it counts if --class-of names it", deliberate=True)
    return None
