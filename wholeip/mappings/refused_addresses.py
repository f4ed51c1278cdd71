"""Parses an address of a load balancer, a pod or a node, and refuses kinds that cannot belong to one pod.

The law: no address of loopback, of a link, of a group or of a cloud's metadata is a value here. Without this, a writer
of a status could redirect a program's loopback or its requests for credentials.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from sidecar.values.special_addresses import special_kind
from wholeip.mappings.addresses import Address, keep, without_leading_zeros


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
    # Reserved: 240.0.0.0/4 and unallocated IPv6 ranges.
    return special_kind(address) or ("a reserved address" if address.is_reserved else None)
