"""Who is where: the primary and every secondary have addresses of loopback, in a network of their own. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

PRIMARY: Final = "127.0.0.1"
PORT: Final = 5300
"""Of every secondary, for NOTIFY."""
_FIRST: Final = int(ip_address("127.1.0.1"))
_FIRST_REPLICA: Final = int(ip_address("127.2.0.1"))


def address_of(number: int) -> str:
    """The address of a secondary."""
    return str(ip_address(_FIRST + number))


def replica_address(number: int) -> str:
    """The address of a dnsproxy that is a secondary."""
    return str(ip_address(_FIRST_REPLICA + number))
