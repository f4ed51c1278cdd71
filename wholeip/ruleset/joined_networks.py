"""Networks as elements of a set, joined where they overlap or make up a wider one.

The law: the result has the addresses of the networks, in the fewest of them, as that of ipaddress.collapse_addresses.
That takes 0.2 s for 5,000 nodes, each with an address and a network of pods, and cannot be interrupted. Pure.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

_ADDRESSES: Final = {4: IPv4Address, 6: IPv6Address}
_BITS: Final = {4: 32, 6: 128}


def join_networks(networks: Iterable[IPv4Network | IPv6Network]) -> Generator[None, None, dict[int, list[str]]]:
    """By family (4, 6) the networks in nft's notation, where one address has no length; in steps of a network."""
    known: dict[int, list[tuple[int, int]]] = {4: [], 6: []}
    for network in networks:
        known[network.version].append((int(network.network_address), network.prefixlen))
        yield
    found: dict[int, list[str]] = {}
    for version, some in known.items():
        found[version] = []
        for first, length in (yield from _join(some, _BITS[version])):
            # Without a scope (RFC 4007), which may hold any text, rules included.
            text = str(_ADDRESSES[version](first))
            found[version].append(text if length == _BITS[version] else f"{text}/{length}")
            yield
    return found


def _join(networks: list[tuple[int, int]], bits: int) -> Generator[None, None, list[tuple[int, int]]]:
    """First addresses and lengths, in order; two halves of a network that meet become that network."""
    joined: list[tuple[int, int]] = []
    end = 0
    # The wider of two with one first address comes first.
    for first, length in sorted(networks):
        if first >= end:
            end = first + (1 << (bits - length))
            _append(joined, first, length, bits)
        yield
    return joined


def _append(joined: list[tuple[int, int]], first: int, length: int, bits: int) -> None:
    """Add a network behind all others, joined with those before it as long as they are the two halves of one."""
    while joined and joined[-1][1] == length and first - joined[-1][0] == (half := 1 << (bits - length)) & first:
        joined.pop()
        first, length = first - half, length - 1
    joined.append((first, length))
