"""Decides which addresses are refused, whatever a load balancer or a slice says.

The law: an address is mapped only if neither its kind, nor a node, a pod or the operator forbids it. Without this, a
writer of a status could redirect the traffic of a node, or a program's loopback.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Final

from wholeip.mappings.addresses import Address, Network, keep

_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")


def parse_mappable(text: str) -> Address:
    """A unicast address that is routed beyond one host and one link. Raises ValueError with the reason."""
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError("it is not an IP address") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise ValueError("it has a scope")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError("it is an IPv4-mapped IPv6 address")
    if kind := _kind(address):
        raise ValueError(f"it is {kind}")
    return keep(address)


@dataclass(frozen=True, slots=True)
class Protected:
    """The addresses of this cluster that are never mapped."""

    nodes: frozenset[Address] = frozenset()
    networks: tuple[Network, ...] = ()
    """From --protect."""

    def refusal(self, address: Address) -> str | None:
        """Why an address is not mapped, or None if it may be."""
        if address in self.nodes:
            return "it is a node's own"
        for network in self.networks:
            if address.version == network.version and address in network:
                return f"{network} is protected (--protect)"
        return None

    def refusal_of_mapping(self, address: Address, pod: Address, *, pods: AbstractSet[Address]) -> str | None:
        """Why an address is not mapped to a pod, or None if it may be; `pods` are the addresses of all pods."""
        if address in pods:
            return "it is a pod's own"
        if reason := self.refusal(address):
            return reason
        if reason := self.refusal(pod):
            return f"its pod has the address {pod}, and {reason}"
        return None


def _kind(address: Address) -> str | None:
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    # 240.0.0.0/4 with the broadcast address, 0.0.0.0/8, and unallocated IPv6 ranges.
    if address.is_reserved or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "a reserved address"
    return None
