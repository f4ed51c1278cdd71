"""The addresses and networks of a cluster: those of the flags, and those that its objects show.

The law: the result depends on the objects alone, not on the order of their changes. An unknown network is reported with
the flag that states it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Final, TypeVar

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import Unreadable
from wholeip.mappings.addresses import Address, Network, sorted_addresses
from wholeip.mappings.api_server import ApiService, ServiceRange, cluster_ips_of, endpoints_of, networks_of
from wholeip.mappings.networks import NetworkSet
from wholeip.mappings.nodes import Node, addresses_of, pod_networks_of
from wholeip.mappings.protected import Protected

_STATIC_BITS: Final = 8
"""Kubernetes gives the lowest addresses of a range, at most 256, to Services whose cluster IP is chosen by people: the
API server and the cluster DNS.
https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/"""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class StatedNetworks:
    """The networks and addresses that do not come from objects."""

    cluster: tuple[Network, ...] = ()
    """From --cluster-network."""
    protected: tuple[Network, ...] = ()
    """From --protect."""
    allowed: tuple[Network, ...] = ()
    """From --allow."""
    api_servers: frozenset[Address] = frozenset()
    """The addresses of the API server that the agent dials."""


NOTHING_STATED: Final = StatedNetworks()


@dataclass(slots=True)
class ClusterNetworks:
    """Addresses and networks by the objects that show them."""

    stated: StatedNetworks = NOTHING_STATED
    nodes: dict[str, frozenset[Address]] = field(default_factory=dict)
    pods: dict[str, frozenset[Network]] = field(default_factory=dict)
    """By node."""
    ranges: dict[str, frozenset[Network]] = field(default_factory=dict)
    api_services: dict[str, frozenset[Address]] = field(default_factory=dict)
    api_slices: dict[str, frozenset[Address]] = field(default_factory=dict)

    def change_nodes(self, changes: Mapping[str, Node | Unreadable | None]) -> bool:
        """Apply changes, by name; None: deleted. Returns whether anything is different now."""
        addresses = _change(self.nodes, changes, addresses_of)
        return _change(self.pods, changes, pod_networks_of) or addresses

    def change_ranges(self, changes: Mapping[str, ServiceRange | Unreadable | None]) -> bool:
        """The same for ServiceCIDRs."""
        return _change(self.ranges, changes, networks_of)

    def change_api_services(self, changes: Mapping[str, ApiService | Unreadable | None]) -> bool:
        """The same for the Service kubernetes."""
        return _change(self.api_services, changes, cluster_ips_of)

    def change_api_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> bool:
        """The same for its slices."""
        return _change(self.api_slices, changes, endpoints_of)

    def add_api_addresses(self, addresses: frozenset[Address]) -> None:
        """The agent dials these addresses too."""
        self.stated = replace(self.stated, api_servers=self.stated.api_servers | addresses)

    def protected(self) -> Protected:
        """The addresses and networks that are not mapped."""
        return Protected(
            nodes=_union(self.nodes),
            api_servers=self.stated.api_servers | _union(self.api_services) | _union(self.api_slices),
            protected=NetworkSet(self.stated.protected),
            allowed=NetworkSet(self.stated.allowed),
            stated=NetworkSet(self.stated.cluster),
            pods=NetworkSet(_union(self.pods)),
            services=NetworkSet(_union(self.ranges)),
            around_api_server=NetworkSet(map(_around, self._without_range())),
        )

    def inside(self) -> frozenset[Network]:
        """The networks in which pods keep their addresses: of the flags, of pods, and of nodes."""
        own = (ip_network(str(address)) for address in _union(self.nodes))
        return frozenset((*self.stated.cluster, *own)) | _union(self.pods)

    def advise(self) -> Iterator[str]:
        """The flags that an operator must set because the cluster does not show a network."""
        if not self.stated.cluster and not any(self.pods.values()):
            yield "no network of the cluster's pods is known: set --cluster-network"
        if unknown := sorted_addresses(self._without_range()):
            shown = ", ".join(map(str, unknown))
            yield (
                f"the range of the cluster IPs of Services is not known, only the API server's {shown}: add the range "
                "to --cluster-network, or allow the agent to list and watch servicecidrs (Kubernetes 1.33)"
            )

        for version in self._families_without_range():
            yield (
                f"the cluster has IPv{version} networks of pods, and the range of the IPv{version} cluster IPs of its "
                "Services is not known: add it to --cluster-network"
            )

    def _families_without_range(self) -> Iterator[int]:
        """The families of pods in which nothing shows cluster IPs: the API server has one in the first family alone."""
        shown = {address.version for address in _union(self.api_services)}
        if any(self.ranges.values()) or not shown:
            return
        pods, known = NetworkSet(_union(self.pods)), NetworkSet((*self.stated.cluster, *self.stated.protected))
        yield from (one for one in (4, 6) if pods.has_family(one) and not known.has_family(one) and one not in shown)

    def _without_range(self) -> frozenset[Address]:
        """The cluster IPs of the API server that no known network has."""
        known = NetworkSet((*_union(self.ranges), *self.stated.cluster, *self.stated.protected))
        return frozenset(address for address in _union(self.api_services) if not known.find(address))


def _change(
    known: dict[str, frozenset[K]],
    changes: Mapping[str, V | Unreadable | None],
    read: Callable[[V | Unreadable], frozenset[K]],
) -> bool:
    before = known.copy()
    for key, value in changes.items():
        known.pop(key, None)
        if value is not None:
            known[key] = read(value)
    return known != before


def _union(known: Mapping[str, frozenset[K]]) -> frozenset[K]:
    return frozenset[K]().union(*known.values())


def _around(address: Address) -> Network:
    """The 256 addresses that have the same beginning."""
    return ip_network((int(address) >> _STATIC_BITS << _STATIC_BITS, address.max_prefixlen - _STATIC_BITS))
