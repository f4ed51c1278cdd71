"""Contribution: what one object of the Gateway API claims, as things stand, and what it can't have.

The law: a route claims the names that it and a listener serve together. A listener claims its own exact name too, for
what we don't see may serve it (a TCPRoute, an implementation's own routes), but yields it to whoever routes it. The
wildcard of a listener is no claim: it says what may be served, and most names below it may live elsewhere. Hostnames in
a mark count as a route's own, and as those that a Gateway or ListenerSet listens for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.wildcards import reach_in_dns, wider
from dnsproxy.sources.gateway.attachment import Parent, Refusal, attach, find_parent
from dnsproxy.sources.gateway.facts import GatewayFacts, ListenerSetFacts, RouteFacts, UnreadableFacts
from dnsproxy.sources.gateway.kinds import Ref
from dnsproxy.sources.gateway.listeners import Listener
from dnsproxy.sources.gateway.object_graph import State

Contribution = tuple[list[Claim], list[Rejection]]
Reached = list[tuple[Parent, tuple[Listener, ...]]]
"""The parents that take a route, in its own order, with their listeners that do."""

_MOST_REASONS: Final = 3
"""In one rejection: a route has up to 32 parents and 1024 hostnames."""


def contribution(ref: Ref, state: State, *, classes: Set[str]) -> Contribution:
    """The claims of an object, each hostname once, and a rejection for each of its hostnames that it does not get."""
    facts = state.get(ref)
    match facts:
        case None:
            return [], []
        case UnreadableFacts():
            return [], [Rejection(facts.origin, facts.reason)]
        case RouteFacts():
            claims, rejections = _of_route(facts, state, classes)
        case _:
            claims, rejections = _of_listeners(ref, facts, state, classes)
    return claims, [*(Rejection(facts.origin, fault) for fault in facts.faults), *rejections]


def _of_listeners(ref: Ref, facts: GatewayFacts | ListenerSetFacts, state: State, classes: Set[str]) -> Contribution:
    listened = (one.hostname for one in facts.listeners)
    names = [*(name for name in listened if name is not None and not is_wildcard(name)), *facts.marks.hostnames]
    parent = find_parent(ref, state, classes=classes)
    if isinstance(parent, Refusal):
        return [], _refused(facts.origin, names, [parent])
    return [_claim(name, facts.origin, parent, parent.target, routed=False) for name in dict.fromkeys(names)], []


def _of_route(route: RouteFacts, state: State, classes: Set[str]) -> Contribution:
    reached, refusals = _attached(route, state, classes)
    served, matched = _served(route, reached)
    claims = [
        _claim(name, route.origin, parent, route.marks.target or parent.target) for name, parent in served.items()
    ]
    own = _own_hostnames(route)
    if own:
        left = [name for name in own if name not in matched]
        if not left:
            return claims, []
        refusals += [Refusal(f"no listener of {parent.ref} that takes the route has it") for parent, _ in reached]
        return claims, _refused(route.origin, left, refusals)
    if claims or route.hostnames is not None:
        return claims, []
    refusals = refusals if not reached else [Refusal("it serves every name: give the route or the listener a hostname")]
    return [], [Rejection(route.origin, _format_reasons(refusals), _are_deliberate(refusals))]


def _served(route: RouteFacts, reached: Reached) -> tuple[dict[str, Parent], set[str]]:
    """The names that a route serves, with the first parent that has each, and those of its own that it so does."""
    doors: dict[str, int] = {}
    every_name: list[int] = []
    for number, (_, listeners) in enumerate(reached):
        for listener in listeners:
            if listener.hostname is None:
                every_name.append(number)
            else:
                doors.setdefault(listener.hostname, number)
    wanted = _own_hostnames(route)
    found = {name: every_name[0] for name in wanted if every_name}
    matched = set(found)
    if route.hostnames is None:
        found |= {name: min(number, found.get(name, number)) for name, number in doors.items()}
    for own, door, name in intersect(dict.fromkeys(wanted), doors):
        found[name] = min(doors[door], found.get(name, doors[door]))
        matched.add(own)
    return {name: reached[number][0] for name, number in found.items()}, matched


def _own_hostnames(route: RouteFacts) -> tuple[str, ...]:
    """Those of its marks too: what a listener leaves to a route is a right that its owner gives, and no mark takes."""
    return (*(route.hostnames or ()), *route.marks.hostnames)


def _attached(route: RouteFacts, state: State, classes: Set[str]) -> tuple[Reached, list[Refusal]]:
    """What the route reaches through its parentRefs, and why not more."""
    bar = _bar(route)
    if bar is not None:
        return [], [bar]
    reached: Reached = []
    refusals = []
    origin = route.origin
    labels = state.labels_of(origin.namespace)
    for ref in route.parents:
        parent = find_parent(ref.parent, state, classes=classes)
        found = parent if isinstance(parent, Refusal) else attach(origin, ref, parent, labels=labels)
        if isinstance(parent, Parent) and not isinstance(found, Refusal):
            reached.append((parent, found))
        refusals += [found] if isinstance(found, Refusal) else []
    return reached, refusals


def _bar(route: RouteFacts) -> Refusal | None:
    """Why a route gets nowhere, whatever its parents say."""
    bar = route.marks.bar
    if bar is not None:
        return Refusal(f"it {bar}", route.marks.ignored)
    return None if route.parents else Refusal("it has no Gateway or ListenerSet as its parent", deliberate=True)


def _claim(hostname: str, origin: Origin, parent: Parent, target: str | None, *, routed: bool = True) -> Claim:
    gateway = parent.gateway
    return Claim(
        hostname,
        reach_in_dns(hostname),
        origin,
        ingress_class=gateway.class_name,
        target=target,
        status=gateway.status,
        routed=routed,
    )


def _refused(origin: Origin, hostnames: Iterable[str], refusals: list[Refusal]) -> list[Rejection]:
    """One rejection for each name, so that whoever looks for it finds it."""
    reason, deliberate = _format_reasons(refusals), _are_deliberate(refusals)
    return [Rejection(origin, f"{hostname}: {reason}", deliberate) for hostname in dict.fromkeys(hostnames)]


def _format_reasons(refusals: Iterable[Refusal]) -> str:
    reasons = list(dict.fromkeys(refusal.reason for refusal in refusals))
    more = [f"and {len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else []
    return "; ".join(reasons[:_MOST_REASONS] + more)


def _are_deliberate(refusals: Iterable[Refusal]) -> bool:
    return all(refusal.deliberate for refusal in refusals)


def intersect(ones: Collection[str], others: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """The pairs of hostnames that have names in common, each with what that is: the narrower of the two.

    Sets or dicts, else each look-up takes long.
    """
    for one in ones:
        if one in others:
            yield one, one, one
        for other in wider(one):
            if other in others:
                yield one, other, one
    for other in others:
        for one in wider(other):
            if one in ones:
                yield one, other, other
