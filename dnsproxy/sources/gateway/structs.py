"""Structs: the fields of the Gateway API's objects that decide which hostnames are served, through which Gateway.

The law: as the API server sends them; an absent field is None here, and facts.py fills in the specification's default.
 https://gateway-api.sigs.k8s.io/reference/spec/
"""

from __future__ import annotations

import msgspec

from dnsproxy.sources.annotations import AnnotatedMetadata
from sidecar.kubernetes.objects import ObjectMeta


class LabelRequirement(msgspec.Struct, frozen=True, gc=False):
    """meta/v1 LabelSelectorRequirement."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """meta/v1 LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


class Namespaces(msgspec.Struct, frozen=True, gc=False):
    """RouteNamespaces of a listener, ListenerNamespaces of a Gateway."""

    from_: str | None = msgspec.field(default=None, name="from")
    selector: LabelSelector | None = None


class RouteKind(msgspec.Struct, frozen=True, gc=False):
    """RouteGroupKind."""

    kind: str
    group: str | None = None


class AllowedRoutes(msgspec.Struct, frozen=True, gc=False):
    """Which routes may attach to a listener."""

    namespaces: Namespaces | None = None
    kinds: tuple[RouteKind | None, ...] | None = None


class Listener(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Listener of a Gateway, ListenerEntry of a ListenerSet."""

    name: str
    protocol: str
    port: int = 0
    """0 in an XListenerSet that leaves the choice to its controller."""
    hostname: str | None = None
    allowed_routes: AllowedRoutes | None = None


class AllowedListeners(msgspec.Struct, frozen=True, gc=False):
    """Which ListenerSets may attach to a Gateway."""

    namespaces: Namespaces | None = None


class GatewaySpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields that are read here."""

    gateway_class_name: str
    listeners: tuple[Listener | None, ...] | None = None
    allowed_listeners: AllowedListeners | None = None


class Address(msgspec.Struct, frozen=True, gc=False):
    """GatewayStatusAddress."""

    value: str = ""
    type: str | None = None


class Condition(msgspec.Struct, frozen=True, gc=False):
    """meta/v1 Condition without its times and texts."""

    type: str | None = None
    status: str | None = None


class ListenerStatus(msgspec.Struct, frozen=True, gc=False):
    """The field that is read here: the count of attached routes changes with every route and does not affect names."""

    conditions: tuple[Condition | None, ...] | None = None


class GatewayStatus(msgspec.Struct, frozen=True, gc=False):
    """The fields that are read here."""

    addresses: tuple[Address | None, ...] | None = None
    conditions: tuple[Condition | None, ...] | None = None
    listeners: tuple[ListenerStatus | None, ...] | None = None


class Gateway(msgspec.Struct, frozen=True, gc=False):
    """gateway.networking.k8s.io Gateway."""

    metadata: AnnotatedMetadata
    spec: GatewaySpec
    status: GatewayStatus | None = None


class ParentReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """ParentReference of a route; without section and port, also the ParentGatewayReference of a ListenerSet."""

    name: str
    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    section_name: str | None = None
    port: int | None = None


class ListenerSetSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields that are read here."""

    parent_ref: ParentReference
    listeners: tuple[Listener | None, ...] | None = None


class ListenerSet(msgspec.Struct, frozen=True, gc=False):
    """gateway.networking.k8s.io ListenerSet, and its forerunner XListenerSet in gateway.networking.x-k8s.io."""

    metadata: AnnotatedMetadata
    spec: ListenerSetSpec


class RouteSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What HTTPRouteSpec, GRPCRouteSpec and TLSRouteSpec have in common."""

    parent_refs: tuple[ParentReference | None, ...] | None = None
    hostnames: tuple[str | None, ...] | None = None
    rules: msgspec.Raw = msgspec.Raw(b"null")
    """JSON that is not decoded: most of an object is here, and only redirects.py reads a part of it."""


class Route(msgspec.Struct, frozen=True, gc=False):
    """HTTPRoute, GRPCRoute or TLSRoute; the collection knows which."""

    metadata: AnnotatedMetadata
    spec: RouteSpec = RouteSpec()


class NamespaceMetadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """With all labels: a selector may use any of them."""

    labels: dict[str, str] | None = None


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """v1 Namespace."""

    metadata: NamespaceMetadata
