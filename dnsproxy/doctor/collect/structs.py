"""Structs: the fields of Kubernetes objects that only the doctor reads; sidecar/kubernetes/structs has the others.

The law: null and an absent field are None or a default, never an error; Secrets have no struct. Tested in
tests/dnsproxy/doctor/collect/test_collecting.py. https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from typing import Any

import msgspec

from dnsproxy.sources.ingress import IngressClass, IngressClassSpec
from sidecar.kubernetes.objects import ObjectMeta


class ClassSpec(IngressClassSpec, frozen=True, gc=False, rename="camel"):
    """The controller of an IngressClass, or of a GatewayClass."""

    controller_name: str | None = None


class ControlledClass(IngressClass, frozen=True, gc=False):
    """networking.k8s.io/v1 IngressClass, gateway.networking.k8s.io GatewayClass."""

    spec: ClassSpec | None = None


class NodeSpec(msgspec.Struct, frozen=True):
    """The origin of a node, and the networks of its pods."""

    provider_id: str | None = msgspec.field(default=None, name="providerID")
    pod_cidr: str | None = msgspec.field(default=None, name="podCIDR")
    pod_cidrs: tuple[str, ...] | None = msgspec.field(default=None, name="podCIDRs")


class NodeAddress(msgspec.Struct, frozen=True):
    """One address of a node."""

    type: str | None = None
    address: str | None = None


class NodeStatus(msgspec.Struct, frozen=True):
    """The addresses of a node."""

    addresses: tuple[NodeAddress, ...] | None = None


class Node(msgspec.Struct, frozen=True):
    """core/v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class FelixConfiguration(msgspec.Struct, frozen=True):
    """crd.projectcalico.org/v1 FelixConfiguration."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
