"""Nodes: the addresses that are theirs, and the networks of their pods.

The law: pure. A load balancer that gives out the addresses of nodes must not take them from them; and what a pod begins
towards nodes and pods keeps the pod's address.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/#NodeStatus
"""

from __future__ import annotations

from typing import Final

import msgspec

from sidecar.kubernetes.objects import Collection, ObjectMeta, Unreadable
from wholeip.mappings.addresses import Address, Network, parse_network
from wholeip.mappings.refused_addresses import parse_mappable


class _NodeAddress(msgspec.Struct, frozen=True, gc=False):
    address: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    pod_cidrs: tuple[str | None, ...] | None = msgspec.field(default=None, name="podCIDRs")


class _Status(msgspec.Struct, frozen=True, gc=False):
    addresses: tuple[_NodeAddress | None, ...] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Node that say where it and its pods are."""

    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


NODES: Final = Collection("Node", "/api/v1/nodes", Node, optional=True)
"""RBAC: list and watch on nodes. Without it they are not known."""


def addresses_of(node: Node | Unreadable) -> frozenset[Address]:
    """What must not be mapped because of it."""
    found = set()
    for one in ((node.status or _Status()).addresses or ()) if isinstance(node, Node) else ():
        try:
            found.add(parse_mappable(one.address if one is not None else ""))
        except ValueError:
            # A hostname, or what is refused anyway.
            continue
    return frozenset(found)


def pod_networks_of(node: Node | Unreadable) -> frozenset[Network]:
    """Where the pods of this node are, if the control plane gives networks to nodes; some plugins do it alone."""
    found = set()
    for text in ((node.spec or _Spec()).pod_cidrs or ()) if isinstance(node, Node) else ():
        try:
            found.add(parse_network(text or ""))
        except ValueError:
            continue
    return frozenset(found)
