"""Facts: what is kept of a Gateway, a ListenerSet or a route, parsed once per version of the object.

The law: two versions of an object that serve the same names have equal facts, so that the many changes that only
report a status cost a comparison. An invalid part becomes a fault in words and affects no other part.

Structs and not dataclasses: 100,000 dataclass instances would block the loop during each garbage collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Final

import msgspec

from dnsproxy.dns.addresses import parse_address
from dnsproxy.dns.names import parse_hostname, parse_hostnames
from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.annotations import Annotations, origin_of, read_annotations
from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.admission import NO_NAMESPACE, Admission, BadScope, parse_admission
from dnsproxy.sources.gateway.kinds import GATEWAY, GROUP, GROUPS, HTTP_ROUTE, LISTENER_SETS, Ref
from dnsproxy.sources.gateway.listeners import Listener, parse_listeners
from dnsproxy.sources.gateway.redirects import only_redirects
from dnsproxy.sources.gateway.selectors import BadSelector
from dnsproxy.sources.unreadable import UnreadableFacts, unreadable_facts
from sidecar.kubernetes.objects import Unreadable

_ACCEPTED: Final = frozenset(("Accepted", "Programmed", "Ready", "Scheduled"))
"""Conditions that only a controller that serves a Gateway or a listener sets to True; the last two are those of earlier
versions."""

_PARENTS: Final = frozenset((GROUPS[kind], kind) for kind in (GATEWAY, *LISTENER_SETS))


class ParentRef(msgspec.Struct, frozen=True, gc=False):
    """One of the parents that a route names."""

    parent: Ref
    section: str | None = None
    """The name of a listener; None: all listeners."""
    port: int | None = None
    """Only the listeners on this port; None: any port."""


class GatewayFacts(msgspec.Struct, frozen=True, gc=False):
    """A Gateway."""

    origin: Origin
    annotations: Annotations
    faults: tuple[str, ...]
    class_name: str
    listeners: tuple[Listener, ...]
    listener_sets: Admission
    status: tuple[str, ...]
    """Its addresses and hostnames, in the form of Terms.status."""
    accepted: bool = False
    """Whether a controller has accepted it: only controllers write a status."""

    @property
    def key(self) -> str:
        """`NAMESPACE/NAME`; one text for all claims that have it."""
        return intern(f"{self.origin.namespace}/{self.origin.name}")


class ListenerSetFacts(msgspec.Struct, frozen=True, gc=False):
    """A ListenerSet or XListenerSet."""

    origin: Origin
    annotations: Annotations
    faults: tuple[str, ...]
    gateway: Ref | None
    """None if the parent is of another kind."""
    listeners: tuple[Listener, ...]


class RouteFacts(msgspec.Struct, frozen=True, gc=False):
    """A route of any kind."""

    origin: Origin
    annotations: Annotations
    faults: tuple[str, ...]
    parents: tuple[ParentRef, ...]
    """Only Gateways and ListenerSets: a Service as parent belongs to a service mesh."""
    hostnames: tuple[str, ...] | None
    """In normal form; None: those of the listeners. Empty if all of them are invalid."""
    only_redirects: bool = False
    """Whether it does nothing but redirect."""


Facts = GatewayFacts | ListenerSetFacts | RouteFacts | UnreadableFacts
Object = structs.Gateway | structs.ListenerSet | structs.Route


def read_facts(kind: str, one: Object | Unreadable) -> Facts:
    """The facts of an object of a kind."""
    origin = origin_of(kind, one.metadata)
    match one:
        case structs.Gateway():
            return _read_gateway(origin, one)
        case structs.ListenerSet():
            return _read_listener_set(origin, one)
        case structs.Route():
            return _read_route(origin, one)
        case Unreadable():
            return unreadable_facts(kind, one)


def parents_of(facts: Facts) -> Iterator[Ref]:
    """The objects on which the names of this one directly depend."""
    match facts:
        case RouteFacts():
            yield from (ref.parent for ref in facts.parents)
        case ListenerSetFacts(gateway=Ref() as gateway):
            yield gateway


def _read_gateway(origin: Origin, gateway: structs.Gateway) -> GatewayFacts:
    spec = gateway.spec
    annotations = read_annotations(gateway.metadata)
    listeners, faults = parse_listeners(spec.listeners)
    allowed = spec.allowed_listeners
    try:
        admission = parse_admission(allowed.namespaces if allowed is not None else None, default="None")
    except (BadScope, BadSelector) as error:
        admission = NO_NAMESPACE
        faults.append(f"allowedListeners: {error}")
    status = tuple(dict.fromkeys(_read_addresses(gateway.status)))
    return GatewayFacts(
        origin,
        annotations,
        (*annotations.faults, *annotations.bad_hostnames, *faults),
        spec.gateway_class_name,
        listeners,
        admission,
        status,
        bool(status) or _is_accepted(gateway.status),
    )


def _read_listener_set(origin: Origin, one: structs.ListenerSet) -> ListenerSetFacts:
    annotations = read_annotations(one.metadata)
    listeners, faults = parse_listeners(one.spec.listeners)
    ref = _parse_parent(one.spec.parent_ref, origin.namespace)
    gateway = ref.parent if ref is not None and ref.parent.kind == GATEWAY else None
    return ListenerSetFacts(
        origin, annotations, (*annotations.faults, *annotations.bad_hostnames, *faults), gateway, listeners
    )


def _read_route(origin: Origin, route: structs.Route) -> RouteFacts:
    annotations = read_annotations(route.metadata)
    refs = (_parse_parent(ref, origin.namespace) for ref in route.spec.parent_refs or () if ref is not None)
    parents = tuple(dict.fromkeys(ref for ref in refs if ref is not None))
    hostnames, faults = parse_hostnames(text or "" for text in route.spec.hostnames or ())
    takes_listeners = not route.spec.hostnames
    return RouteFacts(
        origin,
        annotations,
        (*annotations.faults, *annotations.bad_hostnames, *faults),
        parents,
        None if takes_listeners else tuple(hostnames),
        # Routes of the other kinds have no redirects.
        origin.kind == HTTP_ROUTE and only_redirects(route.spec.rules),
    )


def _parse_parent(ref: structs.ParentReference, home: str) -> ParentRef | None:
    """None for a parent that is neither Gateway nor ListenerSet."""
    # Only an absent group means the Gateway API: a reference to a Service has an empty group.
    group = GROUP if ref.group is None else ref.group
    kind = GATEWAY if ref.kind is None else ref.kind
    if (group, kind) not in _PARENTS:
        return None
    parent = Ref(intern(kind), intern(ref.namespace or home), intern(ref.name))
    return ParentRef(parent, intern(ref.section_name) if ref.section_name else None, ref.port or None)


def _is_accepted(status: structs.GatewayStatus | None) -> bool:
    """A controller may refuse a Gateway because of one listener, and serve the others (reason ListenersNotValid)."""
    if status is None:
        return False
    of_listeners = (one.conditions for one in status.listeners or () if one is not None)
    conditions = (one for part in (status.conditions, *of_listeners) for one in part or ())
    return any(one is not None and one.type in _ACCEPTED and one.status == "True" for one in conditions)


def _read_addresses(status: structs.GatewayStatus | None) -> Iterator[str]:
    """Values that are neither an address nor a hostname are ignored: a controller may write anything."""
    for address in (status.addresses if status is not None else None) or ():
        try:
            match address:
                case structs.Address(type=None | "IPAddress"):
                    yield parse_address(address.value)
                case structs.Address(type="Hostname"):
                    yield parse_hostname(address.value)
        except ValueError:
            continue
