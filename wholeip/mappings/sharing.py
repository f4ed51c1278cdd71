"""Sharing: which Services have an address in common, a load balancer's or a pod's, and so decide about one another.

The law: pure. Those that are reached from some Services share nothing with the rest: the plan of the rest is the same
without them, and theirs without the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from wholeip.mappings.addresses import Address


class Sharing:
    """The addresses of Services, and the Services of addresses."""

    def __init__(self) -> None:
        """Of none."""
        self._addresses: dict[str, frozenset[Address]] = {}
        self._services: defaultdict[Address, set[str]] = defaultdict(set)

    def put(self, service: str, addresses: frozenset[Address]) -> AbstractSet[str]:
        """Give a Service these addresses in place of its own; the others that have shared one with it until now."""
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
        """The Services that have an address."""
        return self._services.get(address, set())

    def reach(self, services: Iterable[str]) -> AbstractSet[str]:
        """These, those that share an address with one of them, those that share one with these, and so on."""
        reached, passed = set(services), set[Address]()
        waiting = [*reached]
        while waiting:
            for address in self._addresses.get(waiting.pop(), frozenset()) - passed:
                # Once each: thousands may have one address in common.
                passed.add(address)
                new = self._services[address] - reached
                reached |= new
                waiting += new
        return reached
