"""Contribution: the hostnames that one object of the Gateway API claims, and those that it does not get.

The law: a route claims the names that it and a listener serve together. A hostname is a set of names, `*.example.org`
every name below example.org at any depth, and the names served are the intersection of the sets. A listener claims its
own exact name too, because routes that are not read here may serve it (a TCPRoute, an implementation's own routes), but
an object that routes the name wins. The wildcard of a listener is not a claim: it says what may be served, and most
names below it may be served elsewhere. A route that only redirects, from http to https, makes it none either: the names
below it that are served have routes of their own. Hostnames in annotations count as a route's own, and as those of
listeners.
https://gateway-api.sigs.k8s.io/reference/spec/#hostname
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, share_terms
from dnsproxy.hostnames.wildcards import intersect, reach_in_dns
from dnsproxy.sources.gateway.attachment import Parent, attach, find_parent
from dnsproxy.sources.gateway.facts import GatewayFacts, ListenerSetFacts, RouteFacts
from dnsproxy.sources.gateway.kinds import Ref
from dnsproxy.sources.gateway.listeners import Listener
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal, list_hostnames, rejection_of, rejections_for
from dnsproxy.sources.unreadable import UnreadableFacts

Contribution = tuple[list[Claim], list[Rejection]]
Reached = list[tuple[Parent, tuple[Listener, ...]]]
"""The parents that accept a route, in the route's order, with the listeners that accept it."""


def contribution(ref: Ref, graph: ObjectGraph, *, classes: Set[str]) -> Contribution:
    """The claims of an object, each hostname once, and a rejection for each hostname that it does not get."""
    facts = graph.get(ref)
    match facts:
        case None:
            return [], []
        case UnreadableFacts():
            return [], [Rejection(facts.origin, facts.reason)]
        case RouteFacts():
            claims, rejections = _of_route(facts, graph, classes)
        case _:
            claims, rejections = _of_listeners(ref, facts, graph, classes)
    return claims, [*(Rejection(facts.origin, fault) for fault in facts.faults), *rejections]


def _of_listeners(
    ref: Ref, facts: GatewayFacts | ListenerSetFacts, graph: ObjectGraph, classes: Set[str]
) -> Contribution:
    listened = (one.hostname for one in facts.listeners)
    names = {name: False for name in listened if name is not None and not is_wildcard(name)}
    names |= {name: True for name in facts.annotations.hostnames if name not in names}
    parent = find_parent(ref, graph, classes=classes)
    if isinstance(parent, Refusal):
        return [], rejections_for(facts.origin, names, [parent])
    return [
        _claim(name, facts.origin, parent, routed=False, annotated=annotated) for name, annotated in names.items()
    ], []


def _of_route(route: RouteFacts, graph: ObjectGraph, classes: Set[str]) -> Contribution:
    reached, refusals = _attached(route, graph, classes)
    own = _own_hostnames(route)
    found, matched = _served(route, reached, own)
    served = _claimed(route, found, own)
    plain = served
    if route.annotations.hostnames:
        hostnames = route.hostnames or ()
        plain = _claimed(route, _served(route, reached, hostnames)[0], hostnames)
    target = route.annotations.target
    granted = _granted(reached)
    claims = [
        _claim(
            name,
            route.origin,
            plain.get(name, parent),
            own_target=target,
            annotated=name not in plain,
            granted=granted.get(name, ""),
        )
        for name, parent in served.items()
    ]
    wild = [name for name in found if name not in served]
    unclaimed = [Rejection(route.origin, _explain_redirects(wild), deliberate=True)] if wild else []
    if own:
        left = [name for name in own if name not in matched]
        if not left:
            return claims, unclaimed
        refusals += [Refusal(f"no listener of {parent.ref} that accepts the route has it") for parent, _ in reached]
        return claims, unclaimed + rejections_for(route.origin, left, refusals)
    if claims or wild or route.hostnames is not None:
        return claims, unclaimed
    refusals = refusals if not reached else [Refusal("it serves every name: give the route or the listener a hostname")]
    return [], [rejection_of(route.origin, refusals)]


def _served(route: RouteFacts, reached: Reached, wanted: Collection[str]) -> tuple[dict[str, Parent], set[str]]:
    """The names that a route serves, with the first parent that has each, and those of its wanted ones that match."""
    doors: dict[str, int] = {}
    every_name: list[int] = []
    for number, (_, listeners) in enumerate(reached):
        for listener in listeners:
            if listener.hostname is None:
                every_name.append(number)
            else:
                doors.setdefault(listener.hostname, number)
    found = {name: every_name[0] for name in wanted if every_name}
    matched = set(found)
    if route.hostnames is None:
        found |= {name: min(number, found.get(name, number)) for name, number in doors.items()}
    for own, door, name in intersect(dict.fromkeys(wanted), doors):
        found[name] = min(doors[door], found.get(name, doors[door]))
        matched.add(own)
    return {name: reached[number][0] for name, number in found.items()}, matched


def _claimed(route: RouteFacts, served: dict[str, Parent], own: Collection[str]) -> dict[str, Parent]:
    """The served names that the route claims: without those wildcards of listeners below which it only redirects."""
    if not route.only_redirects:
        return served
    named = frozenset(own)
    return {name: parent for name, parent in served.items() if name in named or not is_wildcard(name)}


def _explain_redirects(wildcards: Sequence[str]) -> str:
    listed = list_hostnames(wildcards)
    return f"{listed}: it only redirects, and takes this from a listener: give it hostnames to have them answered"


def _granted(reached: Reached) -> dict[str, str]:
    """Since when the route's listeners have names of their own: the oldest object that has a name, by name."""
    since: dict[str, str] = {}
    for parent, listeners in reached:
        for listener in listeners:
            if listener.hostname is not None:
                since[listener.hostname] = min(parent.created, since.get(listener.hostname, parent.created))
    return since


def _own_hostnames(route: RouteFacts) -> tuple[str, ...]:
    """The route's hostnames and those of its annotations; both need a listener that serves them."""
    return (*(route.hostnames or ()), *route.annotations.hostnames)


def _attached(route: RouteFacts, graph: ObjectGraph, classes: Set[str]) -> tuple[Reached, list[Refusal]]:
    """The listeners that the route attaches to, and why not to others."""
    unattached = _unattached(route)
    if unattached is not None:
        return [], [unattached]
    reached: Reached = []
    refusals = []
    origin = route.origin
    labels = graph.labels_of(origin.namespace)
    for ref in route.parents:
        parent = find_parent(ref.parent, graph, classes=classes)
        found = parent if isinstance(parent, Refusal) else attach(origin, ref, parent, labels=labels)
        if isinstance(parent, Parent) and not isinstance(found, Refusal):
            reached.append((parent, found))
        refusals += [found] if isinstance(found, Refusal) else []
    return reached, refusals


def _unattached(route: RouteFacts) -> Refusal | None:
    """Why a route attaches to nothing, whatever its parents allow."""
    exclusion = route.annotations.exclusion
    if exclusion is not None:
        return Refusal(f"it {exclusion}", route.annotations.ignored)
    return None if route.parents else Refusal("it has no Gateway or ListenerSet as its parent", deliberate=True)


def _claim(
    hostname: str,
    origin: Origin,
    parent: Parent,
    *,
    own_target: str | None = None,
    routed: bool = True,
    annotated: bool = False,
    granted: str = "",
) -> Claim:
    gateway = parent.gateway
    target, target_from = (own_target, "") if own_target is not None else (parent.target, parent.target_from)
    return Claim(
        hostname,
        reach_in_dns(hostname),
        origin,
        share_terms(
            Terms(
                ingress_class=gateway.class_name,
                target=target,
                status=gateway.status,
                routed=routed,
                annotated=annotated,
                since=granted if granted < origin.created else "",
                target_from=target_from if target is not None and target_from != origin.namespace else "",
                gateway=gateway.key,
                accepted=gateway.accepted,
            )
        ),
    )
