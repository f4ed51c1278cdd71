"""Contribution: the hostnames that one object with annotations of external-dns claims, and those that it does not get.

The law: pure; one object in, claims and rejections out. A name with the addresses of a load balancer is claimed as an
Ingress claims, a name with those of pods or a ClusterIP with exactly these. A name that external-dns points elsewhere,
or does not publish, is forwarded as before, and the rejection has the reason.
https://kubernetes-sigs.github.io/external-dns/latest/docs/sources/service/#targets
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sys import intern
from typing import Final

from dnsproxy.dns.names import BadName, is_wildcard, parse_hostname
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms, share_terms
from dnsproxy.hostnames.name_limits import too_many
from dnsproxy.hostnames.targets import OWN
from dnsproxy.hostnames.wildcards import reach_in_dns, wider
from dnsproxy.sources.annotations import rejections_of
from dnsproxy.sources.class_names import refuse_class
from dnsproxy.sources.external_dns.annotations import HOSTNAME, INTERNAL, PREFIX
from dnsproxy.sources.external_dns.facts import (
    CLUSTER_IP,
    LOAD_BALANCER,
    AnnotatedGateway,
    Facts,
    IngressFacts,
    ServiceFacts,
)
from dnsproxy.sources.external_dns.headless import PodEndpoint
from dnsproxy.sources.unreadable import UnreadableFacts

Contribution = tuple[list[Claim], list[Rejection]]

_MOST_ADDRESSES: Final = 64
"""Of one name: A and AAAA records of some 1.5 KB. The first ones by number; resolvers shuffle and clients use one."""
_NODES: Final = "external-dns points it to nodes, which pods reach without Switchback"


def contribution(
    facts: Facts, *, endpoints: Sequence[PodEndpoint] = (), default_class: str | None = None, most: int | None = None
) -> Contribution:
    """The claims of an object, each hostname once, and a rejection for each hostname that it does not get.

    `endpoints`: of a headless Service; `default_class`: of an Ingress that names none.
    """
    if isinstance(facts, UnreadableFacts):
        return [], [Rejection(facts.origin, facts.reason)]
    origin, annotations, wanted = facts.origin, facts.annotations, facts.wanted
    rejections = [Rejection(origin, fault) for fault in (*annotations.faults, *wanted.faults)]
    if wanted.refusal:
        return [], [*rejections, *_refuse(origin, wanted.names, wanted.refusal)]
    if annotations.exclusion is not None:
        return [], [*rejections, *rejections_of(origin, annotations, wanted.names)]
    match facts:
        case ServiceFacts():
            claims, refused = _of_service(facts, endpoints, most)
        case IngressFacts():
            claims, refused = _of_ingress(facts, default_class)
        case AnnotatedGateway():
            claims, refused = _of_gateway(facts)
    return claims, rejections + refused


def _of_service(facts: ServiceFacts, endpoints: Sequence[PodEndpoint], most: int | None) -> Contribution:
    wanted, origin = facts.wanted, facts.origin
    if facts.annotations.target is not None:
        return [_plain(name, facts) for name in wanted.names], []
    if facts.type == LOAD_BALANCER:
        return _of_load_balancer(facts), []
    if wanted.target:
        reason = f"external-dns points it to {wanted.target} ({PREFIX}target), not to this Service"
    elif facts.type != CLUSTER_IP:
        reason = _NODES if facts.type == "NodePort" else f"external-dns points it where this {facts.type} leads"
    elif not facts.headless:
        claims = [_own(name, origin, facts.cluster_ips) for name in wanted.internal]
        named = [name for name in wanted.hostnames if name not in wanted.internal]
        reason = f"external-dns publishes no {PREFIX}{HOSTNAME} of a ClusterIP Service: see {PREFIX}{INTERNAL}"
        return claims, list(_refuse(origin, named, reason))
    elif wanted.of_nodes:
        reason = _NODES
    else:
        return _of_pods(facts, endpoints, most)
    return [], list(_refuse(origin, wanted.names, reason))


def _of_load_balancer(facts: ServiceFacts) -> list[Claim]:
    """Of internal names the ClusterIP, unless the annotation `target` replaces that too."""
    wanted = facts.wanted
    plain = wanted.names if wanted.target else wanted.hostnames
    claims = {name: _plain(name, facts) for name in plain}
    for name in wanted.internal:
        claims.setdefault(name, _own(name, facts.origin, facts.cluster_ips))
    return list(claims.values())


def _plain(name: str, facts: ServiceFacts) -> Claim:
    """With the default target, as an Ingress has it."""
    return Claim(
        name,
        reach_in_dns(name),
        facts.origin,
        share_terms(
            Terms(
                target=facts.annotations.target,
                status=facts.status,
                annotated=True,
                declared=facts.wanted.declared or facts.external_ips,
            )
        ),
    )


def _of_pods(facts: ServiceFacts, endpoints: Sequence[PodEndpoint], most: int | None) -> Contribution:
    """The names of a headless Service, and below them those of its pods that have a hostname."""
    rejections = []
    everything = tuple(dict.fromkeys(one.address for one in endpoints))
    if len(everything) > _MOST_ADDRESSES:
        reason = f"it has {len(everything):,} endpoints: only {_MOST_ADDRESSES} are answered"
        rejections.append(Rejection(facts.origin, reason))
    claims: dict[str, Claim] = {}
    for name, addresses in _pod_names(facts.wanted.names, everything, endpoints):
        if len(claims) == most and name not in claims:
            rejections.append(Rejection(facts.origin, too_many(len(claims))))
            break
        claims.setdefault(name, _own(name, facts.origin, addresses))
    return list(claims.values()), rejections


def _pod_names(
    names: Iterable[str], everything: tuple[str, ...], endpoints: Iterable[PodEndpoint]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    pods: dict[str, dict[str, None]] = {}
    for one in endpoints:
        if one.hostname and "." not in one.hostname and not one.hostname.startswith("*"):
            pods.setdefault(one.hostname, {})[one.address] = None
    for name in names:
        yield name, everything
    for name in names:
        for pod, addresses in sorted(pods.items()) if not is_wildcard(name) else ():
            try:
                yield parse_hostname(f"{pod}.{name}"), tuple(addresses)
            except BadName:
                continue  # too long


def _own(name: str, origin: Origin, addresses: tuple[str, ...]) -> Claim:
    """Answered with the object's own addresses, which need the right of a target (hostnames/rights.py)."""
    status = addresses[:_MOST_ADDRESSES]
    return Claim(name, reach_in_dns(name), origin, share_terms(Terms(target=OWN, status=status, annotated=True)))


def _of_ingress(facts: IngressFacts, default_class: str | None) -> Contribution:
    class_name = facts.class_name or default_class
    refusal = refuse_class(class_name)
    if refusal is not None:
        return [], [Rejection(facts.origin, refusal)]
    ingress_class = intern(class_name) if class_name else None
    return [
        Claim(
            name,
            reach_in_dns(name),
            facts.origin,
            share_terms(
                Terms(
                    ingress_class=ingress_class,
                    target=facts.annotations.target,
                    status=facts.status,
                    annotated=True,
                    declared=facts.wanted.declared,
                )
            ),
        )
        for name in facts.wanted.hostnames
    ], []


def _of_gateway(facts: AnnotatedGateway) -> Contribution:
    """external-dns reads the hostnames of routes alone, so a Gateway must have a listener that serves the name."""
    gateway = facts.gateway
    doors = frozenset(listener.hostname for listener in gateway.listeners)
    served = [
        name for name in facts.wanted.hostnames if None in doors or name in doors or not doors.isdisjoint(wider(name))
    ]
    claims = [
        Claim(
            name,
            reach_in_dns(name),
            facts.origin,
            share_terms(
                Terms(
                    ingress_class=intern(gateway.class_name),
                    target=facts.annotations.target,
                    status=gateway.status,
                    routed=False,
                    annotated=True,
                    gateway=gateway.key,
                    accepted=gateway.accepted,
                    declared=facts.wanted.declared,
                )
            ),
        )
        for name in served
    ]
    left = [name for name in facts.wanted.hostnames if name not in served]
    return claims, list(_refuse(facts.origin, left, "no listener of the Gateway serves it", deliberate=False))


def _refuse(origin: Origin, names: Iterable[str], reason: str, *, deliberate: bool = True) -> Iterator[Rejection]:
    """One rejection for each name, so that a search for the name finds it."""
    for name in names:
        yield Rejection(origin, f"{name}: {reason}", deliberate)
