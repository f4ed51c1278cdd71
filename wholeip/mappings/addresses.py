"""Addresses that may be mapped, and those that never are, whatever a load balancer or a slice says.

The law: pure. Whoever may write a status could else take the traffic of a node to itself, or a program's loopback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kept:
    """Computes hash and text once: a plan for thousands of Services asks for them again and again."""

    __slots__ = ()
    _hash: int
    _text: str

    def __init__(self, address: int | str) -> None:
        super().__init__(address)  # type: ignore[call-arg]  # of ipaddress, which comes next
        self._hash, self._text = super().__hash__(), super().__str__()  # type: ignore[misc]  # slots of the two below

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._text


class KeptIPv4(Kept, IPv4Address):
    """An IPv4 address."""

    __slots__ = ("_hash", "_text")


class KeptIPv6(Kept, IPv6Address):
    """An IPv6 address without a scope."""

    __slots__ = ("_hash", "_text")


@dataclass(frozen=True, slots=True)
class Protected:
    """What is kept out beside what no unicast address of a pod can be."""

    nodes: frozenset[Address] = frozenset()
    networks: tuple[Network, ...] = ()
    """Of --protect."""

    def refusal(self, address: Address) -> str | None:
        """Why an address is not mapped, or None where it may be."""
        if address in self.nodes:
            return "it is a node's own"
        for network in self.networks:
            if address.version == network.version and address in network:
                return f"{network} is protected (--protect)"
        return None


def parse_mappable(text: str) -> Address:
    """A unicast address with a meaning beyond one computer and one wire. Raises ValueError with the reason."""
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError("it is not an IP address") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise ValueError("it has a scope")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError("it is an IPv4 address in the form of an IPv6 one")
    if kind := _kind(address):
        raise ValueError(f"it is {kind}")
    return KeptIPv4(int(address)) if isinstance(address, IPv4Address) else KeptIPv6(int(address))


def parse_network(text: str) -> Network:
    """`ADDRESS[/LENGTH]`. Raises ValueError."""
    try:
        return ip_network(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!a} is not a network: {error}") from None


def sorted_addresses(addresses: Iterable[Address]) -> list[Address]:
    """IPv4 first, then by number; addresses of two families do not compare."""
    return sorted(set(addresses), key=lambda one: (one.version, int(one)))


def _kind(address: Address) -> str | None:
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    # 240.0.0.0/4 with the broadcast address, 0.0.0.0/8, and what IPv6 has not given to anybody.
    if address.is_reserved or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "a reserved address"
    return None


_THIS_NETWORK = IPv4Network("0.0.0.0/8")
