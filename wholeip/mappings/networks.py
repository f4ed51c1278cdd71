"""A set of networks that finds the network of an address.

The law: the time to find it depends on the number of prefix lengths and not on the number of networks, because a
cluster has a network for each node and an address is looked up for each Service.
"""

from __future__ import annotations

from collections.abc import Iterable

from wholeip.mappings.addresses import Address, Network


class NetworkSet:
    """Networks of both families."""

    __slots__ = ("_by_prefix", "networks")

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        """Copies the networks."""
        self.networks = frozenset(networks)
        self._by_prefix: dict[tuple[int, int], dict[int, Network]] = {}
        # The widest first, so that the answer does not depend on the order.
        for network in sorted(self.networks, key=lambda one: (one.version, one.prefixlen)):
            shift = network.max_prefixlen - network.prefixlen
            found = self._by_prefix.setdefault((network.version, shift), {})
            found[int(network.network_address) >> shift] = network

    def __bool__(self) -> bool:
        """Whether there is a network."""
        return bool(self.networks)

    def find(self, address: Address) -> Network | None:
        """The widest network that has the address, or None."""
        for (version, shift), networks in self._by_prefix.items():
            if version == address.version and (network := networks.get(int(address) >> shift)) is not None:
                return network
        return None

    def has_family(self, version: int) -> bool:
        """Whether a network is of this family (4, 6)."""
        return any(known == version for known, _ in self._by_prefix)
