"""Finds the Services that share an address, of a load balancer or of a pod, and so affect one another in the plan.

The law: the Services that are reached from some Services share no address with the rest: each group has the same plan
without the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from wholeip.mappings.addresses import Address
from wholeip.mappings.networks import NetworkSet


class Sharing:
    """The addresses of Services, and the Services of addresses."""

    def __init__(self) -> None:
        """No Services."""
        self._addresses: dict[str, frozenset[Address]] = {}
        self._services: defaultdict[Address, set[str]] = defaultdict(set)

    def put(self, service: str, addresses: frozenset[Address]) -> AbstractSet[str]:
        """Replace the addresses of a Service; returns the other Services that shared one with it until now."""
        known = self._addresses.pop(service, frozenset())
        before = set[str]().union(*(self._services[address] for address in known)) - {service}
        for address in known - addresses:
            self._services[address].discard(service)
            if not self._services[address]:
                del self._services[address]
        for address in addresses - known:
            self._services[address].add(service)
        if addresses:
            self._addresses[service] = addresses
        return before

    def at(self, address: Address) -> AbstractSet[str]:
        """The Services with an address."""
        return self._services.get(address, set())

    def within(self, networks: NetworkSet) -> AbstractSet[str]:
        """The Services with an address in these networks."""
        found = (services for address, services in self._services.items() if networks.find(address))
        return set[str]().union(*found)

    def reach(self, services: Iterable[str]) -> AbstractSet[str]:
        """These Services, those that share an address with one of them, and so on."""
        reached, passed = set(services), set[Address]()
        waiting = [*reached]
        while waiting:
            for address in self._addresses.get(waiting.pop(), frozenset()) - passed:
                # Each address once: thousands of Services may share one.
                passed.add(address)
                new = self._services[address] - reached
                reached |= new
                waiting += new
        return reached
