"""Reads hosts: the hostnames of the cluster with their objects, classes and load balancers.

The law: the sources of `dnsproxy serve` make the claims, so that the doctor and the server know the same names. Tested
in tests/dnsproxy/doctor/collect/test_collecting.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.collect.structs import ControlledClass
from dnsproxy.doctor.facts.model import BalancerAddress, Class, Host, Port, Service
from dnsproxy.doctor.judge.paths import GATEWAY_LABELS, NAME_LABELS
from dnsproxy.doctor.judge.providers import ANNOTATION_MARKS
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.gateway.kinds import GROUP
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.structs import Namespace
from dnsproxy.sources.gateway.versions import GROUP_VERSIONS, NAMESPACES, choose_collections, parse_resources
from dnsproxy.sources.ingress import INGRESS_CLASSES, INGRESSES
from dnsproxy.sources.ingress_source import IngressSource
from dnsproxy.sources.settings import GatewayOptions, IngressOptions
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.objects import Collection, Resource, key_of
from sidecar.kubernetes.structs.network import Service as RawService

_MOST_REJECTED: Final = 200
_SETTLE: Final = 1000
_TCP: Final = (None, "TCP")


async def read_hosts(reader: Reader) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """The hosts, and the hostnames that cannot be served, with the reason."""
    store = ClaimStore()
    ingress = IngressSource(store, options=IngressOptions())
    ingress.change_classes(await _objects(reader, INGRESS_CLASSES))
    ingress.change_ingresses(await _objects(reader, INGRESSES))
    await _read_gateways(reader, store)
    hosts = (
        Host(claim.hostname, str(claim.origin), claim.ingress_class or "", claim.status)
        for claim in store.claims()
        if not claim.addresses
    )
    rejected = (f"{rejection.origin}: {rejection.reason}" for rejection in store.rejections())
    return (
        tuple(sorted(set(hosts), key=lambda host: (host.hostname, host.origin))),
        tuple(sorted(rejected)[:_MOST_REJECTED]),
    )


async def _read_gateways(reader: Reader, store: ClaimStore) -> None:
    served: dict[str, frozenset[str]] = {}
    for group_version in GROUP_VERSIONS:
        try:
            served[group_version] = parse_resources((await reader.text(f"/apis/{group_version}")).encode())
        except ApiError:
            # The server does not have it, or RBAC hides it: a list of it would fail too.
            continue
    collections = choose_collections(served)
    if not collections:
        return
    source = GatewaySource(store, options=GatewayOptions())
    namespaces: dict[str, Namespace | None] = dict(await _objects(reader, NAMESPACES))
    source.change_namespaces(namespaces)
    for kind, collection in collections.items():
        source.change(kind, await _objects(reader, collection))
    while not source.is_settled:
        source.settle(_SETTLE)


async def _objects(reader: Reader, collection: Collection[Any]) -> dict[str, Any]:
    found: list[Resource] = await reader.list(collection.path, collection.type, _what(collection)) or []
    return {key_of(one.metadata): one for one in found}


def _what(collection: Collection[Any]) -> str:
    return f"list {collection.path.rpartition('/')[2]}"


async def read_classes(reader: Reader, hosts: Iterable[Host]) -> tuple[Class, ...]:
    """IngressClasses, and GatewayClasses if a host comes from a Gateway, with their controllers."""
    found = await reader.list(INGRESS_CLASSES.path, ControlledClass, _what(INGRESS_CLASSES)) or []
    if any(not host.origin.startswith("Ingress ") for host in hosts):
        found += await reader.list(f"/apis/{GROUP}/v1/gatewayclasses", ControlledClass, "list gatewayclasses") or []
    return tuple(
        Class(one.metadata.name, (one.spec.controller or one.spec.controller_name or "") if one.spec else "")
        for one in found
    )


async def read_services(reader: Reader) -> list[RawService]:
    """Every Service of the cluster."""
    return await reader.list("/api/v1/services", RawService, "list services") or []


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
        annotations={key: value for key, value in annotations.items() if key.startswith(ANNOTATION_MARKS)},
        labels={key: labels[key] for key in (*NAME_LABELS, *GATEWAY_LABELS) if key in labels},
        load_balancer_class=(spec.load_balancer_class if spec else "") or "",
        external_ips=(spec.external_ips if spec else ()) or (),
    )


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
