"""Contribution: the hostnames that one object of Istio claims, and those that it does not get.

The law: a VirtualService claims the names that it and the servers of its Gateways serve together: the intersection of
two sets of names, `*.example.org` being every name below example.org at any depth. A Gateway claims the exact names of
its servers too, but an object that routes the name wins; a wildcard of a server alone claims nothing, as it only says
what may be served. Hostnames in annotations count as a VirtualService's own, and as those of servers.

Istio intersects too: https://github.com/istio/istio/blob/86c9f01fd73/pkg/config/host/names.go (Names.Intersection)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice

from dnsproxy.hostnames.claims import Claim, Rejection, Terms, share_terms
from dnsproxy.hostnames.wildcards import reach_in_dns
from dnsproxy.sources.istio.binding import bind, find_gateway, unbound
from dnsproxy.sources.istio.facts import GatewayFacts, VirtualServiceFacts
from dnsproxy.sources.istio.matching import Match, match_hosts
from dnsproxy.sources.istio.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal, rejection_of, rejections_for
from dnsproxy.sources.unreadable import UnreadableFacts

Contribution = tuple[list[Claim], list[Rejection]]


def contribution(
    kind: str, key: str, graph: ObjectGraph, *, classes: Set[str], most: int | None = None
) -> Contribution:
    """The claims of an object, each hostname once, and a rejection for each hostname that it does not get.

    Of more than `most` claims, one more than that is made, so that name_shares.py sees that they are too many.
    """
    facts = graph.get(kind, key)
    match facts:
        case None:
            return [], []
        case UnreadableFacts():
            return [], [Rejection(facts.origin, facts.reason)]
        case GatewayFacts():
            claims, rejections = _of_gateway(key, facts, graph, classes)
        case VirtualServiceFacts():
            claims, rejections = _of_service(facts, graph, classes, None if most is None else most + 1)
    return claims, [*(Rejection(facts.origin, fault) for fault in facts.faults), *rejections]


def _of_gateway(key: str, gateway: GatewayFacts, graph: ObjectGraph, classes: Set[str]) -> Contribution:
    names = dict.fromkeys(gateway.hosts.exact_names(), False)
    names |= {name: True for name in gateway.annotations.hostnames if name not in names}
    found = find_gateway(key, graph, classes=classes)
    if isinstance(found, Refusal):
        return [], rejections_for(gateway.origin, names, [found])
    return [
        Claim(
            name,
            reach_in_dns(name),
            gateway.origin,
            share_terms(
                Terms(
                    ingress_class=gateway.class_name or None,
                    target=gateway.annotations.target,
                    routed=False,
                    annotated=annotated,
                    gateway=gateway.key,
                )
            ),
        )
        for name, annotated in names.items()
    ], []


def _of_service(service: VirtualServiceFacts, graph: ObjectGraph, classes: Set[str], first: int | None) -> Contribution:
    bound, refusals = _bound(service, graph, classes)
    found = _match(service, bound, (*service.hosts, *service.annotations.hostnames))
    plain = _match(service, bound, service.hosts) if service.annotations.hostnames else found
    granted = _granted(service, bound)
    claims = [
        _claim(
            name,
            service,
            bound[plain.served.get(name, number)],
            annotated=name not in plain.served,
            since=next((since for since, names in granted if name in names), ""),
        )
        for name, number in islice(found.served.items(), first)
    ]
    return claims, _unserved(service, bound, found.matched, refusals)


def _bound(
    service: VirtualServiceFacts, graph: ObjectGraph, classes: Set[str]
) -> tuple[list[GatewayFacts], list[Refusal]]:
    """The Gateways that a VirtualService is bound to, in its order, and why not to others."""
    refusal = unbound(service)
    if refusal is not None:
        return [], [refusal]
    found = [bind(service, key, graph, classes=classes) for key in service.gateways]
    return [one for one in found if isinstance(one, GatewayFacts)], [one for one in found if isinstance(one, Refusal)]


def _match(service: VirtualServiceFacts, bound: Sequence[GatewayFacts], hosts: Iterable[str]) -> Match:
    return match_hosts(
        hosts, [one.hosts for one in bound], namespace=service.origin.namespace, takes_all=service.takes_all
    )


def _unserved(
    service: VirtualServiceFacts, bound: Sequence[GatewayFacts], matched: Set[str], refusals: Sequence[Refusal]
) -> list[Rejection]:
    """One rejection for each host that no Gateway serves."""
    origin, annotated = service.origin, service.annotations.hostnames
    if not bound:
        every_name = [rejection_of(origin, refusals)] if service.takes_all or service.is_delegate else []
        return every_name + rejections_for(origin, (*service.hosts, *service.short_names, *annotated), refusals)
    # A host that no server has is for the sidecars, if the VirtualService is for them too.
    missing = [*refusals, *_missing(service, bound, deliberate=service.in_mesh)]
    rejections = rejections_for(origin, (name for name in service.hosts if name not in matched), missing)
    missing = [*refusals, *_missing(service, bound, deliberate=False)]
    rejections += rejections_for(origin, (name for name in annotated if name not in matched), missing)
    rejections += rejections_for(origin, service.short_names, [_completed(service)])
    if service.takes_all and not matched:
        every = [Refusal(f"it serves every name: give it or {gateway.key} a hostname") for gateway in bound]
        rejections.append(rejection_of(origin, [*refusals, *every]))
    return rejections


def _missing(service: VirtualServiceFacts, bound: Iterable[GatewayFacts], *, deliberate: bool) -> Iterator[Refusal]:
    namespace = service.origin.namespace
    for gateway in bound:
        cut = ", of whose hosts not all were read," if gateway.hosts.is_cut else ""
        yield Refusal(f"no server of {gateway.key}{cut} has it for namespace {namespace}", deliberate)


def _completed(service: VirtualServiceFacts) -> Refusal:
    """https://istio.io/latest/docs/reference/config/networking/virtual-service/#VirtualService, on short names."""
    completed = f"Istio completes a name without a dot to that of a Service in namespace {service.origin.namespace}"
    return Refusal(completed, deliberate=service.in_mesh)


def _granted(service: VirtualServiceFacts, bound: Iterable[GatewayFacts]) -> list[tuple[str, Mapping[str, None]]]:
    """The hostnames of servers that are older than the VirtualService: since when, the oldest first."""
    namespace, created = service.origin.namespace, service.origin.created
    older = sorted((one for one in bound if one.origin.created < created), key=lambda one: one.origin.created)
    return [(one.origin.created, some.names) for one in older for some in one.hosts.names_for(namespace)]


def _claim(name: str, service: VirtualServiceFacts, gateway: GatewayFacts, *, annotated: bool, since: str) -> Claim:
    own, origin = service.annotations.target, service.origin
    target, target_from = (own, "") if own is not None else (gateway.annotations.target, gateway.origin.namespace)
    return Claim(
        name,
        reach_in_dns(name),
        origin,
        share_terms(
            Terms(
                ingress_class=gateway.class_name or None,
                target=target,
                annotated=annotated,
                since=since,
                target_from=target_from if target is not None and target_from != origin.namespace else "",
                gateway=gateway.key,
            )
        ),
    )
