"""Addresses that no name of a table gets in a node's hosts file.

The law: a program of the node runs beside its loopback and its cloud's metadata service, which give out credentials. So
a name of the cluster never redirects the node's own programs there, also if the table has the address. Pure.
"""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address
from typing import Final

from dnsproxy.dns.addresses import is_address

_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
"""Linux routes 0.0.0.0 to the host itself (RFC 1122 section 3.2.1.3)."""
_METADATA: Final = frozenset(
    ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42")
)
"""Metadata services outside 169.254.0.0/16: Alibaba Cloud, Azure, Oracle Cloud, AWS, Google Cloud and Scaleway."""


def is_refused(text: str) -> bool:
    """Whether an address is of the host itself, of one link, of a group, of a metadata service, or reserved."""
    if not is_address(text):
        return True
    address = ip_address(text)
    if address.is_loopback or address.is_reserved or address in _METADATA:
        return True
    return address in _THIS_NETWORK
