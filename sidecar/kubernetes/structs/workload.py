"""Workloads: a Deployment or DaemonSet with its pods, and the ConfigMaps that the pods read as files.

The law: null and an absent field are None or a default, never an error; other fields are not decoded, and nothing of a
Secret ever is. https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/
"""

from __future__ import annotations

import posixpath
from typing import Any

import msgspec

from sidecar.kubernetes.structs.metadata import Metadata


class EnvVar(msgspec.Struct, frozen=True):
    """One environment variable of a container."""

    name: str
    value: str | None = None
    """None if it is empty, or comes from another object."""


class VolumeMount(msgspec.Struct, frozen=True, rename="camel"):
    """The place of a volume in a container."""

    name: str
    mount_path: str
    sub_path: str | None = None
    sub_path_expr: str | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """One container of a pod, and its command line."""

    name: str
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    env_from: tuple[dict[str, Any], ...] | None = None
    """References to ConfigMaps and Secrets that become variables."""
    restart_policy: str | None = None
    """Of an init container: `Always` for a sidecar, which runs as long as the pod."""
    working_dir: str | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None

    @property
    def program(self) -> str:
        """The name of the program that is started; empty if the image decides."""
        return posixpath.basename(self.command[0]) if self.command else ""


class ConfigMap(msgspec.Struct, frozen=True, rename="camel"):
    """core/v1 ConfigMap."""

    metadata: Metadata
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    """In base64."""
    immutable: bool | None = None


class KeyToPath(msgspec.Struct, frozen=True):
    """A key of a ConfigMap, and the path of its file in the volume."""

    key: str
    path: str


class ConfigMapSource(msgspec.Struct, frozen=True):
    """A ConfigMap whose keys become files of a volume."""

    name: str | None = None
    items: tuple[KeyToPath, ...] | None = None
    optional: bool | None = None


class Projection(msgspec.Struct, frozen=True, rename="camel"):
    """One source of a projected volume."""

    config_map: ConfigMapSource | None = None


class Projected(msgspec.Struct, frozen=True):
    """A volume with several sources."""

    sources: tuple[Projection, ...] | None = None


class Volume(msgspec.Struct, frozen=True, rename="camel"):
    """A volume; of kinds without a ConfigMap only their presence counts."""

    name: str
    config_map: ConfigMapSource | None = None
    projected: Projected | None = None
    secret: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    empty_dir: dict[str, Any] | None = None


class PodDnsConfig(msgspec.Struct, frozen=True):
    """Additions to a pod's resolv.conf."""

    nameservers: tuple[str, ...] | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The containers and volumes of a pod, and its DNS settings."""

    containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    dns_policy: str | None = None
    dns_config: PodDnsConfig | None = None
    host_network: bool | None = None
    init_containers: tuple[Container, ...] | None = None


class PodMetadata(msgspec.Struct, frozen=True):
    """The labels by which a Service selects pods."""

    labels: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, frozen=True):
    """The pods of a workload."""

    metadata: PodMetadata | None = None
    spec: PodSpec | None = None


class WorkloadSpec(msgspec.Struct, frozen=True):
    """The pods of a workload, and the number wanted."""

    template: PodTemplate | None = None
    replicas: int | None = None
    """Deployments only."""


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The numbers of pods."""

    ready_replicas: int | None = None
    """Deployments only."""
    desired_number_scheduled: int | None = None
    """DaemonSets only."""
    number_ready: int | None = None
    """DaemonSets only."""


class Workload(msgspec.Struct, frozen=True):
    """apps/v1 Deployment or DaemonSet."""

    metadata: Metadata
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None
