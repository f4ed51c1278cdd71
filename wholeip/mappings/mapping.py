"""A mapping: one address of a load balancer for one pod.

The law: both addresses are of one family. Two mappings may share an address only if both list ports, and no port twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

Protocol = Literal["tcp", "udp", "sctp"]


@dataclass(frozen=True, slots=True, order=True)
class OpenPort:
    """A port that a Service lists; the pod listens on the same number, because ports are not translated."""

    protocol: Protocol
    number: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """What one Service asks for one address of its load balancer."""

    service: str
    """NAMESPACE/NAME, for people."""
    address: IPv4Address | IPv6Address
    """The load balancer's."""
    endpoint: IPv4Address | IPv6Address
    """The pod's."""
    opened: frozenset[OpenPort] | None
    """The ports that are let in; None: all ports and protocols."""
    icmp: bool
    """Whether ICMP, such as echo requests, is let in; matters only if `opened` is given."""
    egress: bool
    """Whether connections that the pod opens leave with this address; for at most one mapping of a pod and family.

    A pod in its node's network is refused if the nodes are known; if not, the rules except the node's own traffic.
    """
    here: bool = True
    """Whether the pod runs on this node. For a pod on another node, traffic from outside the cluster gets this node's
    source address, because the reply must return through this node, which tracks the flow."""
