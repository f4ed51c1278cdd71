"""A mapping: one address of a load balancer that belongs to one pod.

The law: both addresses are of one family, and no address is translated to a pod by two mappings of which neither
says by port which traffic is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

Protocol = Literal["tcp", "udp", "sctp"]


@dataclass(frozen=True, slots=True, order=True)
class OpenPort:
    """A port that a Service lists; the pod listens on the same number, for nothing translates ports."""

    protocol: Protocol
    number: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """What one Service wants of one of its load balancer's addresses."""

    service: str
    """NAMESPACE/NAME, for people."""
    address: IPv4Address | IPv6Address
    """The load balancer's."""
    endpoint: IPv4Address | IPv6Address
    """The pod's."""
    opened: frozenset[OpenPort] | None
    """Only these come in; None: every port and protocol."""
    icmp: bool
    """Whether echo requests and the like come in, where `opened` is given."""
    egress: bool
    """Whether what the pod itself begins leaves with this address; for one mapping of a pod and family at most.

    False for a pod in its node's network: what the whole node begins would leave with it.
    """
    here: bool = True
    """Whether the pod runs on this node. For one elsewhere, who comes from outside the cluster gets this node's source
    address: the pod's reply has to come back by this node, which knows the flow."""
