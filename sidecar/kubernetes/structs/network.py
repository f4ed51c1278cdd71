"""Service and Ingress: how clients reach pods, and under which names.

The law: null and an absent field are None or a default, never an error; other fields are not decoded. Programs that
follow all objects of a cluster (sources, wholeip) keep narrower structs: they may hold 100,000 of them, and each field
costs memory. EndpointSlices are in ../endpoint_slices.py, for followers and one-shot readers alike.
https://kubernetes.io/docs/reference/kubernetes-api/service-resources/
"""

from __future__ import annotations

import msgspec

from sidecar.kubernetes.objects import ObjectMeta
from sidecar.kubernetes.structs.metadata import LabelledMetadata


class ServicePort(msgspec.Struct, frozen=True, rename="camel"):
    """One port of a Service."""

    port: int
    name: str | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The addresses of a Service, and the pods that it selects."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")
    external_ips: tuple[str, ...] | None = msgspec.field(default=None, name="externalIPs")
    load_balancer_class: str | None = None
    load_balancer_source_ranges: tuple[str, ...] | None = None
    external_traffic_policy: str | None = None
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] | None = None


class LoadBalancerPoint(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 LoadBalancerIngress: one address or hostname of a load balancer."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None


class LoadBalancerStatus(msgspec.Struct, frozen=True):
    """Where a load balancer is reached."""

    ingress: tuple[LoadBalancerPoint, ...] | None = None


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a Service's load balancer."""

    load_balancer: LoadBalancerStatus | None = None


class Service(msgspec.Struct, frozen=True):
    """core/v1 Service."""

    metadata: LabelledMetadata
    spec: ServiceSpec | None = None
    status: ServiceStatus | None = None


class Presence(msgspec.Struct, frozen=True):
    """An object of which only counts that it is there."""


class IngressRule(msgspec.Struct, frozen=True):
    """The host of a rule, and whether it has paths."""

    host: str | None = None
    http: Presence | None = None


class IngressTls(msgspec.Struct, frozen=True):
    """Hosts under one certificate."""

    hosts: tuple[str, ...] | None = None


class IngressSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The hosts of an Ingress."""

    rules: tuple[IngressRule, ...] | None = None
    tls: tuple[IngressTls, ...] | None = None
    default_backend: Presence | None = None


class Ingress(msgspec.Struct, frozen=True):
    """networking.k8s.io/v1 Ingress."""

    metadata: ObjectMeta
    spec: IngressSpec | None = None
