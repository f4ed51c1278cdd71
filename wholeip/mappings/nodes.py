"""The addresses of nodes, and the networks of their pods.

The law: an address of a node is never mapped, even if a load balancer assigns it; traffic from a pod to nodes and pods
keeps the pod's address.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/#NodeStatus
"""

from __future__ import annotations

from typing import Final

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from wholeip.mappings.addresses import Address, Network, parse_each, parse_shown_network
from wholeip.mappings.refused_addresses import parse_shown


class _NodeAddress(msgspec.Struct, frozen=True, gc=False):
    address: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    pod_cidrs: tuple[str | None, ...] | None = msgspec.field(default=None, name="podCIDRs")


class _Status(msgspec.Struct, frozen=True, gc=False):
    addresses: tuple[_NodeAddress | None, ...] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Node with its addresses and the networks of its pods."""

    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


NODES: Final = Collection("Node", "/api/v1/nodes", Node, optional=True)
"""RBAC: list and watch on nodes. Without that right, the nodes are unknown."""


def addresses_of(node: Node | Unreadable) -> frozenset[Address]:
    """The addresses of the node, which must not be mapped."""
    stated = ((node.status or _Status()).addresses or ()) if isinstance(node, Node) else ()
    return parse_each(parse_shown, (one.address for one in stated if one is not None))


def pod_networks_of(node: Node | Unreadable) -> frozenset[Network]:
    """The networks of this node's pods, if the control plane assigns them; some network plugins assign them alone."""
    return parse_each(parse_shown_network, ((node.spec or _Spec()).pod_cidrs or ()) if isinstance(node, Node) else ())
