"""Addresses and networks as values.

The law: an address equals that of ipaddress, whether its hash and text are kept or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeVar

T = TypeVar("T")

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96
"""The length of ::ffff:0:0/96 (RFC 4291 section 2.5.5.2)."""


class Kept:
    """Keeps hash and text: a plan for thousands of Services needs them again and again."""

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


def keep(address: Address) -> Address:
    """The same address with its hash and text computed; without a scope."""
    return KeptIPv4(int(address)) if isinstance(address, IPv4Address) else KeptIPv6(int(address))


def parse_network(text: str) -> Network:
    """`ADDRESS[/LENGTH]`; an IPv4-mapped network is that of IPv4. Raises ValueError."""
    try:
        return _unmapped(ip_network(text.strip()))
    except ValueError as error:
        raise ValueError(f"{text!a} is not a network: {error}") from None


def parse_shown_network(text: str) -> Network:
    """A network as an object of the cluster may spell it: with host bits and leading zeros too. Raises ValueError.

    Kubernetes accepts them, and so does everything that reads them with Go (ParseCIDRSloppy of k8s.io/utils).
    """
    address, slash, length = text.partition("/")
    return _unmapped(ip_network(f"{without_leading_zeros(address)}{slash}{length}", strict=False))


def without_leading_zeros(text: str) -> str:
    """Go reads `010.0.0.1` as 10.0.0.1, Python refuses it; also in the last part of an IPv6 address."""
    head, colon, last = text.rpartition(":")
    parts = (part.lstrip("0") or part[:1] for part in last.split("."))
    return f"{head}{colon}{'.'.join(parts)}" if "." in last else text


def _unmapped(network: Network) -> Network:
    """No packet has an IPv4-mapped address, so such a network would protect nothing."""
    first = network.network_address
    if isinstance(first, IPv6Address) and first.ipv4_mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return ip_network((int(first.ipv4_mapped), network.prefixlen - _MAPPED_BITS))
    return network


def sorted_addresses(addresses: Iterable[Address]) -> list[Address]:
    """IPv4 first, then by number: addresses of two families do not compare."""
    return sorted(set(addresses), key=lambda one: (one.version, int(one)))


def parse_each(parse: Callable[[str], T], texts: Iterable[str | None]) -> frozenset[T]:
    """The values of the texts that `parse` accepts; it raises ValueError for others."""
    found = set()
    for text in texts:
        try:
            found.add(parse(text or ""))
        except ValueError:
            continue
    return frozenset(found)
