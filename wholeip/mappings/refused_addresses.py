"""Parses an address of a load balancer, a pod or a node, and refuses kinds that cannot belong to one pod.

The law: no address of loopback, of a link, of a group or of a cloud's metadata is a value here. Without this, a writer
of a status could redirect a program's loopback or its requests for credentials.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Final

from wholeip.mappings.addresses import Address, keep, without_leading_zeros

_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
_METADATA: Final = frozenset(
    ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42")
)
"""Metadata services outside 169.254.0.0/16: Alibaba Cloud, Azure, Oracle Cloud, AWS, Google Cloud and Scaleway."""


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


def parse_shown(text: str) -> Address:
    """An address of the cluster as an object may spell it: with leading zeros, or IPv4-mapped. Raises ValueError.

    Kubernetes accepts these spellings, and an address that is not understood is not protected.
    """
    address = ip_address(without_leading_zeros(text))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return parse_mappable(str(mapped or address))


def _kind(address: Address) -> str | None:
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address in _METADATA:
        return "the metadata service of a cloud"
    # 240.0.0.0/4 with the broadcast address, 0.0.0.0/8, and unallocated IPv6 ranges.
    if address.is_reserved or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "a reserved address"
    return None
