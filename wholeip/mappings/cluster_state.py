"""The state: what a cluster is known to hold of what counts here, and the plan for it.

The law: pure; what it gives depends on the objects alone and not on the order in which their changes came. An object is
read once, when it changes, and a change says which Services have to be planned again because of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from ipaddress import ip_network

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import Unreadable
from wholeip.mappings.addresses import Address, Network
from wholeip.mappings.endpoints import candidates, service_key
from wholeip.mappings.nodes import Node, addresses_of, pod_networks_of
from wholeip.mappings.plan import NOTHING_IN_USE, InUse, Plan, Pods, make_plan
from wholeip.mappings.refused_addresses import Protected
from wholeip.mappings.services import ManagedService, Service, read_service
from wholeip.mappings.sharing import Sharing

_FAMILIES = (4, 6)


class ClusterState:
    """Services, slices and nodes by their keys."""

    def __init__(
        self, *, node: str | None = None, protected: tuple[Network, ...] = (), cluster: tuple[Network, ...] = ()
    ) -> None:
        """`node` is the name of the node to plan for; the networks are those that an operator has stated."""
        self._node = node
        self._stated = cluster
        self._services: dict[str, ManagedService] = {}
        self._owners: dict[str, str] = {}
        """By slice, the Service that it belongs to."""
        self._slices: defaultdict[str, dict[str, EndpointSlice]] = defaultdict(dict)
        """By Service."""
        self._pods: dict[str, Pods] = {}
        """By Service: what its slices come to."""
        self._nodes: dict[str, frozenset[Address]] = {}
        self._pod_networks: dict[str, frozenset[Network]] = {}
        self._protected = Protected(networks=protected)
        self._networks = frozenset(cluster)
        self._sharing = Sharing()
        self._touched: set[str] = set()

    def __len__(self) -> int:
        """How many Services there are."""
        return len(self._services)

    def change_services(self, changes: Mapping[str, Service | Unreadable | None]) -> None:
        """Take changes in, by NAMESPACE/NAME."""
        for key, service in changes.items():
            known, found = self._services.pop(key, None), None if service is None else read_service(service)
            if found is not None:
                self._services[key] = found
            if found != known:
                self._touch(key)

    def change_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        """Take changes in, by NAMESPACE/NAME. A slice that cannot be read is none."""
        touched = set()
        for key, one in changes.items():
            if (owner := self._owners.pop(key, None)) is not None:
                del self._slices[owner][key]
                touched.add(owner)
            if isinstance(one, EndpointSlice) and (owner := service_key(one)) is not None:
                self._owners[key] = owner
                self._slices[owner][key] = one
                touched.add(owner)
        for owner in touched:
            self._read_pods(owner)

    def change_nodes(self, changes: Mapping[str, Node | Unreadable | None]) -> None:
        """Take changes in, by name."""
        before = self._nodes.copy(), self._pod_networks.copy()
        for name, node in changes.items():
            if node is None:
                self._nodes.pop(name, None)
                self._pod_networks.pop(name, None)
            else:
                self._nodes[name] = addresses_of(node)
                self._pod_networks[name] = pod_networks_of(node)
        if before != (self._nodes, self._pod_networks):
            self._read_nodes()

    @property
    def networks(self) -> frozenset[Network]:
        """Those of the cluster: stated ones, those of pods, and the nodes."""
        return self._networks

    def advise(self) -> Iterator[str]:
        """What an operator has to say for all to work, as far as the cluster does not."""
        if self._node is not None and self._node not in self._nodes:
            yield f"the cluster has no Node {self._node} that we may see: --node-name says which one this is"
        if not self._stated and not any(self._pod_networks.values()):
            yield "no network of the cluster's pods is known: --cluster-network says it"

    def plan(self, in_use: InUse = NOTHING_IN_USE) -> Plan:
        """What is to be, for what is known now."""
        return self._plan(self._services.values(), in_use)

    def plan_of(self, services: AbstractSet[str], in_use: InUse) -> Plan:
        """The parts of these Services in the plan, where no other shares an address with them."""
        return self._plan((self._services[key] for key in services if key in self._services), in_use)

    def take_touched(self) -> AbstractSet[str]:
        """The Services whose parts in the plan may differ since this was last asked, for plan_of; gone ones too."""
        touched, self._touched = self._touched, set()
        return self._sharing.reach(touched)

    def _plan(self, services: Iterable[ManagedService], in_use: InUse) -> Plan:
        return make_plan(services, self._pods, in_use=in_use, protected=self._protected, node=self._node)

    def _touch(self, key: str) -> None:
        """Who shared an address with it may get that now, and who will share one is found when all is known."""
        self._touched |= {key, *self._sharing.put(key, self._addresses(key))}

    def _addresses(self, key: str) -> frozenset[Address]:
        """By which a Service and others decide about one another."""
        service = self._services.get(key)
        if service is None:
            return frozenset()
        return frozenset(service.addresses).union(*(found.addresses for found in self._pods.get(key, {}).values()))

    def _read_pods(self, owner: str) -> None:
        slices, known = self._slices[owner], self._pods.pop(owner, None)
        if slices:
            self._pods[owner] = {version: candidates(slices.values(), version) for version in _FAMILIES}
        else:
            del self._slices[owner]
        if self._pods.get(owner) != known:
            self._touch(owner)

    def _read_nodes(self) -> None:
        nodes = frozenset[Address]().union(*self._nodes.values())
        for address in nodes ^ self._protected.nodes:
            self._touched |= self._sharing.at(address)
        self._protected = replace(self._protected, nodes=nodes)
        own = (ip_network(str(address)) for address in nodes)
        self._networks = frozenset((*self._stated, *own)).union(*self._pod_networks.values())
