"""Objects of a cluster, in the form of the API server and as the programs parse them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

import msgspec

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from wholeip.mappings.addresses import Address
from wholeip.mappings.api_server import ApiService, ServiceRange
from wholeip.mappings.mapping import OpenPort
from wholeip.mappings.nodes import Node
from wholeip.mappings.pods import PodObject
from wholeip.mappings.services import LABEL, Service

WHOLE = {"networking.cozystack.io/wholeIP": "true"}
READY = {"ready": True, "serving": True, "terminating": False}
NOT_READY = {"ready": False, "serving": False, "terminating": False}
LEAVING = {"ready": False, "serving": True, "terminating": True}
GONE = {"ready": False, "serving": False, "terminating": True}
PUBLISHED = {"ready": True, "serving": False, "terminating": True}
"""The conditions of a terminating pod that publishNotReadyAddresses still publishes."""
OLD = "2026-01-01T00:00:00Z"
NEW = "2026-02-02T00:00:00Z"


def ip(text: str) -> Address:
    return ip_address(text)


def tcp(*numbers: int) -> frozenset[OpenPort]:
    return frozenset(OpenPort("tcp", number) for number in numbers)


def port(number: int, protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    return {"name": f"{protocol.lower()}-{number}", "port": number, "protocol": protocol, **more}


def service_manifest(
    name: str = "vm",
    *ips: str | Mapping[str, Any],
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    ports: Any = (),
    created: str | None = OLD,
    cluster_ips: Any = (),
    **more: Any,
) -> dict[str, Any]:
    """`ips` are addresses, or whole entries of the status."""
    points = [{"ip": one} if isinstance(one, str) else dict(one) for one in ips]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": dict(annotations or {}),
            "labels": {LABEL: "cozy-proxy"},
            **({"creationTimestamp": created} if created else {}),
        },
        "spec": {
            "type": "LoadBalancer",
            "ports": list(ports) if isinstance(ports, tuple | list) else ports,
            **({"clusterIPs": list(cluster_ips)} if cluster_ips else {}),
        },
        "status": {"loadBalancer": {"ingress": points}},
        **more,
    }


def service(*arguments: Any, **options: Any) -> Service:
    return msgspec.convert(service_manifest(*arguments, **options), Service)


def slice_manifest(
    owner: str = "vm",
    *endpoints: tuple[str, Mapping[str, bool | None] | None],
    namespace: str = "default",
    name: str = "",
    family: str = "IPv4",
    ports: Any = (),
    node: str | None = None,
    target: Mapping[str, str | None] | None = MappingProxyType({"kind": "Pod"}),
) -> dict[str, Any]:
    """`target` is the targetRef of the endpoints: by default the Pod OWNER-pod of the namespace."""
    reference = {"targetRef": {"namespace": namespace, "name": f"{owner}-pod", **target}} if target is not None else {}
    on_node = {"nodeName": node} if node else {}
    return {
        "metadata": {
            "name": name or f"{owner}-{family.lower()}",
            "namespace": namespace,
            "labels": {LABEL: "cozy-proxy", "kubernetes.io/service-name": owner},
        },
        "addressType": family,
        "endpoints": [
            {"addresses": [address], "conditions": conditions, **on_node, **reference}
            for address, conditions in endpoints
        ],
        "ports": list(ports),
    }


def endpoint_slice(*arguments: Any, **options: Any) -> EndpointSlice:
    return msgspec.convert(slice_manifest(*arguments, **options), EndpointSlice)


def pod_manifest(
    name: str = "vm-pod",
    *addresses: str,
    namespace: str = "default",
    phase: str | None = "Running",
    host_network: bool | None = None,
) -> dict[str, Any]:
    status = {"phase": phase, "podIP": addresses[0] if addresses else "", "podIPs": [{"ip": one} for one in addresses]}
    spec = {} if host_network is None else {"hostNetwork": host_network}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}


def pod(*arguments: Any, **options: Any) -> PodObject:
    return msgspec.convert(pod_manifest(*arguments, **options), PodObject)


def node_manifest(name: str, *addresses: str, pods: Any = ()) -> dict[str, Any]:
    stated = [{"type": "InternalIP", "address": one} for one in addresses]
    return {"metadata": {"name": name}, "spec": {"podCIDRs": list(pods)}, "status": {"addresses": stated}}


def node(*arguments: Any, **options: Any) -> Node:
    return msgspec.convert(node_manifest(*arguments, **options), Node)


def api_service(*cluster_ips: str | None) -> ApiService:
    spec = {"clusterIP": cluster_ips[0] if cluster_ips else None, "clusterIPs": list(cluster_ips)}
    return msgspec.convert({"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": spec}, ApiService)


def service_range(*networks: str | None) -> ServiceRange:
    return msgspec.convert({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": list(networks)}}, ServiceRange)
