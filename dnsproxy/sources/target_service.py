"""Service: the addresses that a target `service:NAMESPACE/NAME` stands for, and what is wrong where it has none.

The law: pure; only a ClusterIP is an address here, because it stays when pods come and go.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dnsproxy.dns.addresses import is_address, parse_address
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable

PREFIX: Final = "service:"
_NONE: Final = "None"  # the ClusterIP of a headless Service


class _Spec(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="clusterIPs")


class Service(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Service that say where it is."""

    metadata: ObjectMeta
    spec: _Spec | None = None


def service_collection(key: str) -> Collection[Service]:
    """The one Service `NAMESPACE/NAME`. RBAC: list and watch on services in its namespace, the name given if wished."""
    namespace, _, name = key.partition("/")
    path = f"/api/v1/namespaces/{namespace}/services"
    return Collection(f"Service {key}", path, Service, field_selector=f"metadata.name={name}")


def addresses_of(service: Service | Unreadable | None) -> tuple[str, ...]:
    """Its ClusterIPs, both families, the primary first; empty where it has none."""
    if not isinstance(service, Service) or service.spec is None:
        return ()
    ips = service.spec.cluster_ips or (service.spec.cluster_ip,)
    return tuple(dict.fromkeys(parse_address(ip) for ip in ips if ip and is_address(ip)))


def fault_of(service: Service | Unreadable | None) -> str | None:
    """Why a Service cannot be a target, or None where it can."""
    if service is None:
        return "there is no such Service"
    if isinstance(service, Unreadable):
        return f"unreadable: {service.reason}"
    if addresses_of(service):
        return None
    spec = service.spec or _Spec()
    if spec.type == "ExternalName":
        return "it is an ExternalName; name a Service with a ClusterIP"
    if spec.cluster_ip == _NONE:
        return "it is headless; name a Service with a ClusterIP"
    return "it has no ClusterIP yet"


def service_keys(targets: Iterable[str]) -> frozenset[str]:
    """The `NAMESPACE/NAME` of those targets that are Services."""
    return frozenset(text.removeprefix(PREFIX) for text in targets if text.startswith(PREFIX))
