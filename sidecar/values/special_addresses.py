"""Special addresses: those of each host itself, of a link, of a group, and of a cloud's own services.

The law: pure; whoever lets other people choose an address refuses these, because a program's loopback and a cloud's
metadata service give out credentials. An IPv6 address that stands for an IPv4 address is judged as that.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import Final

_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
"""Linux routes 0.0.0.0 to the host itself (RFC 1122 section 3.2.1.3)."""
_BROADCAST: Final = IPv4Address("255.255.255.255")
_METADATA: Final = frozenset(
    ip_address(text) for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254", "fd00:42::42")
)
"""Metadata services outside 169.254.0.0/16: Alibaba Cloud, Azure, Oracle Cloud, Google Cloud and Scaleway."""
_AWS: Final = ip_network("fd00:ec2::/32")
"""The metadata, DNS and time services of AWS: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html"""
_NAT64: Final = ip_network("64:ff9b::/96")
"""RFC 6052: the last four octets are an IPv4 address."""


def special_kind(address: IPv4Address | IPv6Address) -> str | None:
    """What a special address is, as `a loopback address`; None for every other address."""
    address = _embedded(address)
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address in _METADATA or address in _AWS:
        return "the metadata service of a cloud"
    return "a reserved address" if address == _BROADCAST or address in _THIS_NETWORK else None


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for; otherwise the address itself."""
    if not isinstance(address, IPv6Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address
