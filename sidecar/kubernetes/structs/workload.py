"""Structs: the fields of Kubernetes objects that discovery looks at, and no others.

The law: what Go writes as null or leaves out is None here, never an error; what else an object has is not decoded.
https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

import posixpath
from typing import Any

import msgspec

from sidecar.kubernetes.objects import ObjectMeta


class FieldManager(msgspec.Struct, frozen=True):
    """Who wrote to an object, and when last."""

    manager: str | None = None
    operation: str | None = None
    time: str | None = None
    """RFC 3339 in UTC, so that it sorts as text."""
    subresource: str | None = None


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """An object that this one belongs to."""

    api_version: str
    kind: str
    name: str


class Metadata(ObjectMeta, frozen=True, gc=False, rename="camel"):
    """The part of meta/v1 ObjectMeta that says whose an object is."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    managed_fields: tuple[FieldManager, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    uid: str = ""


class ServicePort(msgspec.Struct, frozen=True):
    """One port of a Service."""

    port: int
    protocol: str | None = None


class ServiceSpec(msgspec.Struct, frozen=True):
    """Where a Service is and whom it stands for."""

    type: str | None = None
    cluster_ip: str | None = msgspec.field(default=None, name="clusterIP")
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] | None = None


class Service(msgspec.Struct, frozen=True):
    """core/v1 Service."""

    metadata: Metadata
    spec: ServiceSpec | None = None


class ConfigMap(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 ConfigMap."""

    metadata: Metadata
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    """In base64."""
    immutable: bool | None = None


class EnvVar(msgspec.Struct, frozen=True):
    """One environment variable of a container."""

    name: str
    value: str | None = None
    """None where it comes from elsewhere, or is empty."""


class VolumeMount(msgspec.Struct, frozen=True, rename="camel"):
    """Where a volume is seen in a container."""

    name: str
    mount_path: str
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """What runs in a pod, and how it is started."""

    name: str
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    env_from: tuple[dict[str, Any], ...] | None = None
    """ConfigMaps and Secrets that become variables; which ones is not looked at."""
    working_dir: str | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None

    @property
    def program(self) -> str:
        """The name of the program that is started; empty where the image decides."""
        return posixpath.basename(self.command[0]) if self.command else ""


class KeyToPath(msgspec.Struct, frozen=True):
    """A key that is shown as a file of this path."""

    key: str
    path: str


class ConfigMapSource(msgspec.Struct, frozen=True):
    """A ConfigMap whose keys are shown as files."""

    name: str | None = None
    items: tuple[KeyToPath, ...] | None = None
    optional: bool | None = None


class Projection(msgspec.Struct, frozen=True, rename="camel"):
    """One source of a projected volume."""

    config_map: ConfigMapSource | None = None


class Projected(msgspec.Struct, frozen=True):
    """Several sources in one volume."""

    sources: tuple[Projection, ...] | None = None


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """Files for containers; kinds that hold no ConfigMap are known by their presence alone."""

    name: str
    config_map: ConfigMapSource | None = None
    projected: Projected | None = None
    secret: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    empty_dir: dict[str, Any] | None = None


class PodDnsConfig(msgspec.Struct, frozen=True):
    """What a pod's resolv.conf gets besides."""

    nameservers: tuple[str, ...] | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod is made of."""

    containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    dns_policy: str | None = None
    dns_config: PodDnsConfig | None = None
    host_network: bool | None = None


class PodMetadata(msgspec.Struct, frozen=True):
    """What a Service selects pods by."""

    labels: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, frozen=True):
    """The pods of a workload."""

    metadata: PodMetadata | None = None
    spec: PodSpec | None = None


class WorkloadSpec(msgspec.Struct, frozen=True):
    """The pods of a workload and how many of them there should be."""

    template: PodTemplate | None = None
    replicas: int | None = None
    """Of a Deployment."""


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods there are."""

    ready_replicas: int | None = None
    """Of a Deployment."""
    desired_number_scheduled: int | None = None
    """Of a DaemonSet."""
    number_ready: int | None = None
    """Of a DaemonSet."""


class EndpointConditions(msgspec.Struct, frozen=True):
    """Whether a pod behind a Service is to be asked."""

    ready: bool | None = None
    """None counts as ready."""


class ServiceEndpoint(msgspec.Struct, frozen=True):
    """A pod behind a Service."""

    conditions: EndpointConditions | None = None


class EndpointSlice(msgspec.Struct, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata: Metadata
    endpoints: tuple[ServiceEndpoint, ...] | None = None


class IngressRule(msgspec.Struct, frozen=True):
    """A rule of an Ingress, of which the host counts."""

    host: str | None = None


class IngressTls(msgspec.Struct, frozen=True):
    """Hosts under one certificate."""

    hosts: tuple[str, ...] | None = None


class IngressSpec(msgspec.Struct, frozen=True):
    """The hosts of an Ingress."""

    rules: tuple[IngressRule, ...] | None = None
    tls: tuple[IngressTls, ...] | None = None


class Ingress(msgspec.Struct, frozen=True):
    """networking.k8s.io/v1 Ingress."""

    metadata: Metadata
    spec: IngressSpec | None = None


class Workload(msgspec.Struct, frozen=True):
    """apps/v1 Deployment or DaemonSet."""

    metadata: Metadata
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None
