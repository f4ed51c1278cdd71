"""Structs: the fields of Services, Ingresses, Gateways and EndpointSlices that decide what external-dns publishes.

The law: as the API server sends them; fewer than in sidecar, because all Services and Ingresses are read. Tested in
test_contribution.py.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dnsproxy.sources.external_dns.annotations import ExternalDnsMetadata
from dnsproxy.sources.gateway import structs as gateway_structs
from dnsproxy.sources.load_balancer import BalancedStatus
from sidecar.kubernetes.endpoint_slices import Conditions, SliceMeta, TargetRef

NO_CLUSTER_IP: Final = "None"
"""The clusterIP of a headless Service."""


class ServiceSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """v1 ServiceSpec."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="clusterIPs")
    external_ips: tuple[str | None, ...] | None = msgspec.field(default=None, name="externalIPs")
    publish_not_ready_addresses: bool | None = None


class Service(msgspec.Struct, frozen=True, gc=False):
    """v1 Service."""

    metadata: ExternalDnsMetadata
    spec: ServiceSpec | None = None
    status: BalancedStatus | None = None


class IngressSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """networking.k8s.io/v1 IngressSpec; its hosts are the Ingress source's."""

    ingress_class_name: str | None = None


class Ingress(msgspec.Struct, frozen=True, gc=False):
    """networking.k8s.io/v1 Ingress."""

    metadata: ExternalDnsMetadata
    spec: IngressSpec | None = None
    status: BalancedStatus | None = None

    @property
    def class_name(self) -> str | None:
        """The class that the object names; None: the cluster's default class."""
        field = self.spec.ingress_class_name if self.spec is not None else None
        annotations = self.metadata.annotations
        return field or (annotations.ingress_class if annotations is not None else None) or None


class Gateway(gateway_structs.Gateway, frozen=True, gc=False):
    """gateway.networking.k8s.io Gateway, with external-dns' annotations."""

    metadata: ExternalDnsMetadata


class SliceEndpoint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One endpoint, with the hostname of its pod."""

    addresses: tuple[str | None, ...] | None = None
    conditions: Conditions | None = None
    hostname: str | None = None
    target_ref: TargetRef | None = None


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata: SliceMeta
    address_type: str = ""
    endpoints: tuple[SliceEndpoint | None, ...] | None = None
