"""Structs: the fields of Kubernetes objects that the doctor looks at beside those that discovery and sources know.

The law: what Go writes as null or leaves out is None or a default here, never an error; nothing of a Secret has a
struct. https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from typing import Any

import msgspec

from sidecar.kubernetes.objects import ObjectMeta


class Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """Who an object is."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ServicePort(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 ServicePort."""

    port: int
    name: str | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 ServiceSpec."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")
    external_ips: tuple[str, ...] | None = msgspec.field(default=None, name="externalIPs")
    load_balancer_class: str | None = None
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] | None = None


class Point(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 LoadBalancerIngress."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None


class LoadBalancerStatus(msgspec.Struct, frozen=True):
    """core/v1 LoadBalancerStatus."""

    ingress: tuple[Point, ...] | None = None


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 ServiceStatus."""

    load_balancer: LoadBalancerStatus | None = None


class Service(msgspec.Struct, frozen=True):
    """core/v1 Service."""

    metadata: Metadata
    spec: ServiceSpec | None = None
    status: ServiceStatus | None = None


class ClassSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The controller of an IngressClass, or of a GatewayClass."""

    controller: str | None = None
    controller_name: str | None = None


class ControlledClass(msgspec.Struct, frozen=True):
    """networking.k8s.io/v1 IngressClass, gateway.networking.k8s.io GatewayClass."""

    metadata: Metadata
    spec: ClassSpec | None = None


class NodeSpec(msgspec.Struct, frozen=True):
    """Where a node comes from."""

    provider_id: str | None = msgspec.field(default=None, name="providerID")


class Node(msgspec.Struct, frozen=True):
    """core/v1 Node."""

    metadata: Metadata
    spec: NodeSpec | None = None


class TargetRef(msgspec.Struct, frozen=True):
    """The pod behind an endpoint."""

    kind: str | None = None
    name: str | None = None


class Conditions(msgspec.Struct, frozen=True):
    """Whether it is to be asked; None counts as yes."""

    ready: bool | None = None


class Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    """discovery.k8s.io/v1 Endpoint."""

    addresses: tuple[str, ...] | None = None
    conditions: Conditions | None = None
    target_ref: TargetRef | None = None


class EndpointSlice(msgspec.Struct, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata: Metadata
    endpoints: tuple[Endpoint, ...] | None = None


class FelixConfiguration(msgspec.Struct, frozen=True):
    """crd.projectcalico.org/v1 FelixConfiguration."""

    metadata: Metadata
    spec: dict[str, Any] | None = None


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What /version tells."""

    git_version: str = ""
