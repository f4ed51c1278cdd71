"""Networks as filters of addresses: `192.0.2.0/24`, or an address alone.

The law: an IPv4 address that a socket of IPv6 shows as `::ffff:192.0.2.1` is in the networks of IPv4, too. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from sidecar.values.text import quoted

Network = IPv4Network | IPv6Network


def parse_network(text: str) -> Network:
    """An address or a network; bits behind the prefix are ignored. Raises ValueError."""
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an address or network; try 192.0.2.10 or 2001:db8::/32") from None


def is_in_networks(address: str, networks: Iterable[Network]) -> bool:
    """Whether one of the networks has the address, which may have a zone (`%eth0`). Raises ValueError."""
    whole = ip_address(address.partition("%")[0])
    mapped = getattr(whole, "ipv4_mapped", None)
    return any(whole in network or (mapped is not None and mapped in network) for network in networks)
