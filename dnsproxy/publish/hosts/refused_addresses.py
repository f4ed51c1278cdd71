"""Addresses that no name of a table gets in a node's hosts file.

The law: a program of the node runs beside its loopback and its cloud's metadata service, which give out credentials. So
a name of the cluster never redirects the node's own programs there, also if the table has the address. Pure.
"""

from __future__ import annotations

from ipaddress import ip_address

from dnsproxy.dns.addresses import is_address
from sidecar.values.special_addresses import special_kind


def is_refused(text: str) -> bool:
    """Whether an address is of the host itself, of one link, of a group, of a metadata service, or reserved."""
    if not is_address(text):
        return True
    address = ip_address(text)
    return address.is_reserved or special_kind(address) is not None
