"""Reads hosts: the hostnames of the cluster with their objects, classes and load balancers.

The law: the sources of `dnsproxy serve` make the claims, so that the doctor and the server know the same names. Tested
in tests/dnsproxy/doctor/collect/test_read_hosts.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import Reach, is_wildcard
from dnsproxy.doctor.collect.read_gateways import TlsClaims, read_gateways
from dnsproxy.doctor.collect.read_kinds import Objects, read_objects
from dnsproxy.doctor.collect.read_sources import points_of, read_sources, tls_claims
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import ControlledClass
from dnsproxy.doctor.facts.model import BalancerAddress, Class, Host, Port, Service
from dnsproxy.doctor.judge.ip_mode_policy import ANNOTATION
from dnsproxy.doctor.judge.paths import CONTROLLERS, GATEWAY_LABELS, NAME_LABELS, OWNING_NAMESPACE
from dnsproxy.doctor.judge.providers import ANNOTATION_MARKS
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim
from dnsproxy.sources.ingress import INGRESS_CLASSES, INGRESSES, hosts_with_tls
from dnsproxy.sources.ingress_source import SOURCE, IngressSource
from dnsproxy.sources.settings import IngressOptions, SourceOptions
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.structs.network import Service as RawService
from sidecar.loop.side_by_side import side_by_side

_MOST_REJECTED: Final = 200
_TCP: Final = (None, "TCP")
_CLASSES: Final = Collection("IngressClass", INGRESS_CLASSES.path, ControlledClass)
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""The predecessor of spec.loadBalancerSourceRanges, which counts if that is empty.
https://github.com/kubernetes/kubernetes/blob/v1.34.4/pkg/api/v1/service/util.go GetLoadBalancerSourceRanges"""
_ANNOTATIONS: Final = (*ANNOTATION_MARKS, ANNOTATION)
"""Prefixes of those that enter the facts."""
_LABELS: Final = frozenset(name for names in CONTROLLERS.values() for name in names)

WaitSources = Callable[[], Awaitable[Sequence[SourceOptions]]]
"""Returns the sources to read, beside Ingresses and the Gateway API, once they are known."""
WaitIngresses = Callable[[], Awaitable[IngressOptions]]
"""Returns which hosts of Ingresses count, once that is known."""
Selectors = Mapping[str, Mapping[str, str]]
"""The selectors of Services by `NAMESPACE/NAME`; empty for a Service without one."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hostnames of the cluster."""

    hosts: tuple[Host, ...]
    """Sorted."""
    rejected: tuple[str, ...]
    """The hostnames that cannot be served, with the reason."""
    classes: tuple[Class, ...]
    """IngressClasses and GatewayClasses with their controllers."""


async def read_hosts(reader: Reader, wait_sources: WaitSources, wait_ingresses: WaitIngresses) -> Hosts:
    """The hosts of all Ingresses, of all Gateways and of the objects of further sources, and their classes."""
    store = ClaimStore()
    async with side_by_side() as start:
        classes = start(read_objects, reader, _CLASSES)
        ingresses = start(read_objects, reader, INGRESSES)
        gateways = start(read_gateways, reader, store)
        others = start(_read_others, reader, store, wait_sources)
    source = IngressSource(store, options=await wait_ingresses())
    source.change_classes(classes.value)
    source.change_ingresses(ingresses.value)
    with_tls, gateway_classes = gateways.value
    with_tls |= _ingress_tls(store, ingresses.value) | others.value
    hosts = _make_hosts(store, with_tls, source.nginx_classes)
    rejected = (f"{rejection.origin}: {rejection.reason}" for rejection in store.rejections())
    return Hosts(
        tuple(sorted(hosts, key=lambda host: (host.hostname, host.origin))),
        tuple(sorted(rejected)[:_MOST_REJECTED]),
        tuple(map(_make_class, (*classes.value.values(), *gateway_classes.values()))),
    )


def _ingress_tls(store: ClaimStore, ingresses: Objects) -> TlsClaims:
    hostnames: dict[str, list[str]] = {}
    for claim in store.claims():
        if claim.origin.kind == SOURCE:
            hostnames.setdefault(f"{claim.origin.namespace}/{claim.origin.name}", []).append(claim.hostname)
    return frozenset(
        (f"{SOURCE} {key}", hostname)
        for key, names in hostnames.items()
        for hostname in hosts_with_tls(ingresses[key], names)
    )


async def _read_others(reader: Reader, store: ClaimStore, wait_sources: WaitSources) -> TlsClaims:
    objects = await read_sources(reader, store, await wait_sources())
    return tls_claims(store, objects)


def _make_hosts(store: ClaimStore, with_tls: TlsClaims, nginx: Set[str]) -> Iterable[Host]:
    """Each hostname of an object once: external-dns reads Ingresses and Gateways, too.

    `nginx`: the classes of ingress-nginx, which alone serves additional hostnames.
    """
    found: dict[tuple[str, str], Host] = {}
    for claim in sorted(store.claims(), key=lambda claim: claim.terms.annotated):
        if not claim.terms.addresses and (claim.terms.ingress_class in nginx or not claim.is_additional):
            host = _make_host(claim, with_tls)
            found.setdefault((host.hostname, host.origin), host)
    return found.values()


def _make_host(claim: Claim, with_tls: TlsClaims) -> Host:
    origin = str(claim.origin)
    tls = (origin, claim.hostname) in with_tls
    of_kind = claim.origin.kind == SOURCE
    one_label = claim.reach is Reach.ONE_LABEL
    return Host(
        claim.hostname,
        origin,
        claim.terms.ingress_class or "",
        points_of(claim),
        tls,
        one_label if is_wildcard(claim.hostname) and one_label is not of_kind else None,
    )


def _make_class(one: ControlledClass) -> Class:
    return Class(one.metadata.name, (one.spec.controller or one.spec.controller_name or "") if one.spec else "")


async def read_services(reader: Reader) -> tuple[tuple[Service, ...], Selectors]:
    """The Services through which connections of hosts may enter, sorted, and their selectors."""
    found = await reader.list("/api/v1/services", RawService, "list services") or []
    made = ((make_service(raw), _selector(raw)) for raw in found)
    # Few of a cluster's Services: the others are freed here.
    kept = sorted((one for one in made if may_be_balanced(one[0], _LABELS)), key=lambda one: one[0].key)
    return tuple(service for service, _ in kept), {service.key: selector for service, selector in kept}


def _selector(raw: RawService) -> Mapping[str, str]:
    return (raw.spec.selector or {}) if raw.spec is not None else {}


def make_service(raw: RawService) -> Service:
    """The part of a Service that enters the facts."""
    spec = raw.spec
    status = raw.status.load_balancer if raw.status else None
    annotations, labels = raw.metadata.annotations or {}, raw.metadata.labels or {}
    ips = (spec.cluster_ips or (spec.cluster_ip,)) if spec else ()
    return Service(
        key=f"{raw.metadata.namespace}/{raw.metadata.name}",
        type=(spec.type if spec else "") or "ClusterIP",
        cluster_ips=tuple(ip for ip in ips if ip and ip != "None"),
        ports=tuple(_ports(raw)),
        points=tuple(
            BalancerAddress(point.ip or "", point.hostname or "", point.ip_mode or "")
            for point in (status.ingress or () if status else ())
        ),
        annotations={key: value for key, value in annotations.items() if key.startswith(_ANNOTATIONS)},
        labels={key: labels[key] for key in (*NAME_LABELS, *GATEWAY_LABELS, OWNING_NAMESPACE) if key in labels},
        load_balancer_class=(spec.load_balancer_class if spec else "") or "",
        external_ips=(spec.external_ips if spec else ()) or (),
        external_traffic_policy=(spec.external_traffic_policy if spec else "") or "",
        source_ranges=(spec.load_balancer_source_ranges if spec else ()) or _listed(annotations.get(_SOURCE_RANGES)),
    )


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _ports(raw: RawService) -> Iterator[Port]:
    for port in (raw.spec.ports if raw.spec else ()) or ():
        if port.protocol in _TCP:
            yield Port(port.port, port.name or "", port.app_protocol or "")


def may_be_balanced(service: Service, controllers: frozenset[str]) -> bool:
    """Whether the connections of hosts may enter through a Service; other Services do not enter the facts."""
    labelled = {service.labels.get(label) for label in NAME_LABELS}
    return (
        bool(service.points or service.external_ips)
        or service.type == "LoadBalancer"
        or bool(service.ports and labelled & controllers)
    )
