"""The objects that show the addresses of the API server and the ranges of cluster IPs.

The law: a field that is no address or network is ignored, because a follower has logged an unreadable object already.
RBAC: list and watch on services, endpointslices and servicecidrs.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-cidr-v1/
"""

from __future__ import annotations

from typing import Final

import msgspec

from sidecar.kubernetes.endpoint_slices import SERVICE_NAME, EndpointSlice
from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from wholeip.mappings.addresses import Address, Network, parse_each, parse_shown_network
from wholeip.mappings.refused_addresses import parse_shown

_NAME: Final = "kubernetes"
"""The Service of the API server in the namespace default, and its own label on its slices."""


class _ServiceSpec(msgspec.Struct, frozen=True, gc=False):
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="clusterIPs")


class ApiService(msgspec.Struct, frozen=True, gc=False):
    """The Service kubernetes."""

    metadata: ObjectMeta
    spec: _ServiceSpec | None = None


class _RangeSpec(msgspec.Struct, frozen=True, gc=False):
    cidrs: tuple[str | None, ...] | None = None


class ServiceRange(msgspec.Struct, frozen=True, gc=False):
    """A ServiceCIDR."""

    metadata: ObjectMeta
    spec: _RangeSpec | None = None


# The kinds have names of their own, so that their watches differ from those of our Services in metrics and on the page.
API_SERVICE: Final = Collection(
    "KubernetesService", "/api/v1/namespaces/default/services", ApiService, field_selector=f"metadata.name={_NAME}"
)
API_SLICES: Final = Collection(
    "KubernetesEndpointSlice",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    EndpointSlice,
    label_selector=f"{SERVICE_NAME}={_NAME}",
)
SERVICE_RANGES: Final = Collection(
    "ServiceCIDR", "/apis/networking.k8s.io/v1/servicecidrs", ServiceRange, optional=True
)
"""Kubernetes before 1.33 does not serve it, and an older ClusterRole may not allow it."""


def cluster_ips_of(service: ApiService | Unreadable) -> frozenset[Address]:
    """The cluster IPs of a Service."""
    spec = (service.spec if isinstance(service, ApiService) else None) or _ServiceSpec()
    return parse_each(parse_shown, (spec.cluster_ip, *(spec.cluster_ips or ())))


def endpoints_of(one: EndpointSlice | Unreadable) -> frozenset[Address]:
    """The addresses of the endpoints of a slice, whatever their conditions."""
    endpoints = (one.endpoints or ()) if isinstance(one, EndpointSlice) else ()
    return parse_each(parse_shown, (text for endpoint in endpoints for text in endpoint.addresses or ()))


def networks_of(one: ServiceRange | Unreadable) -> frozenset[Network]:
    """The networks of a ServiceCIDR."""
    spec = (one.spec if isinstance(one, ServiceRange) else None) or _RangeSpec()
    return parse_each(parse_shown_network, spec.cidrs or ())
