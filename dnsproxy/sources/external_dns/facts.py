"""Facts: what is kept of one object with annotations of external-dns.

The law: pure; an object without them leaves nothing, however many there are. Tested in test_contribution.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dnsproxy.dns.addresses import is_address, parse_address
from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.annotations import Annotations, origin_of, read_annotations
from dnsproxy.sources.class_names import kept_class
from dnsproxy.sources.external_dns.annotations import Wanted, points_of, read_wanted
from dnsproxy.sources.external_dns.structs import NO_CLUSTER_IP, Gateway, Ingress, Service, ServiceSpec
from dnsproxy.sources.gateway.facts import GatewayFacts, read_facts
from dnsproxy.sources.gateway.kinds import GATEWAY
from dnsproxy.sources.load_balancer import points_of as balancers_of
from dnsproxy.sources.unreadable import UnreadableFacts

LOAD_BALANCER = "LoadBalancer"
CLUSTER_IP = "ClusterIP"


class ServiceFacts(msgspec.Struct, frozen=True, gc=False):
    """A Service."""

    origin: Origin
    annotations: Annotations
    wanted: Wanted
    type: str
    headless: bool
    publishes_unready: bool
    cluster_ips: tuple[str, ...]
    """In canonical form; of a Service with internal names."""
    status: tuple[str, ...]
    """Its load balancer, in the form of Terms.status."""
    external_ips: tuple[str, ...]
    """Its writer's choice, unlike the status."""


class IngressFacts(msgspec.Struct, frozen=True, gc=False):
    """An Ingress."""

    origin: Origin
    annotations: Annotations
    wanted: Wanted
    class_name: str | None
    """None: the cluster's default class."""
    status: tuple[str, ...]


class AnnotatedGateway(msgspec.Struct, frozen=True, gc=False):
    """A Gateway."""

    origin: Origin
    annotations: Annotations
    wanted: Wanted
    gateway: GatewayFacts


Facts = ServiceFacts | IngressFacts | AnnotatedGateway | UnreadableFacts


def read(one: Service | Ingress | Gateway, *, most: int | None) -> Facts | None:
    """The facts of an object, of which the first `most` hostnames are read; None if external-dns publishes nothing."""
    match one:
        case Service():
            return _read_service(one, most)
        case Ingress():
            return _read_ingress(one, most)
        case Gateway():
            return _read_gateway(one, most)


def _read_service(service: Service, most: int | None) -> ServiceFacts | None:
    wanted = read_wanted(service.metadata, internal=True, most=most)
    if wanted is None:
        return None
    spec = service.spec or ServiceSpec()
    return ServiceFacts(
        origin_of("Service", service.metadata),
        read_annotations(service.metadata),
        wanted,
        spec.type or CLUSTER_IP,
        spec.cluster_ip == NO_CLUSTER_IP,
        bool(spec.publish_not_ready_addresses),
        _addresses(spec.cluster_ips or (spec.cluster_ip,)) if wanted.internal else (),
        balancers_of(service.status),
        points_of(filter(None, spec.external_ips or ())),
    )


def _read_ingress(ingress: Ingress, most: int | None) -> IngressFacts | None:
    wanted = read_wanted(ingress.metadata, ingress=True, most=most)
    if wanted is None:
        return None
    origin = origin_of("Ingress", ingress.metadata)
    annotations = read_annotations(ingress.metadata)
    return IngressFacts(origin, annotations, wanted, kept_class(ingress.class_name), balancers_of(ingress.status))


def _read_gateway(gateway: Gateway, most: int | None) -> AnnotatedGateway | None:
    wanted = read_wanted(gateway.metadata, most=most)
    facts = read_facts(GATEWAY, gateway) if wanted is not None else None
    if wanted is None or not isinstance(facts, GatewayFacts):
        return None
    return AnnotatedGateway(facts.origin, facts.annotations, wanted, facts)


def _addresses(texts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_address(text) for text in texts if text and is_address(text)))
