"""The state: what a cluster is known to hold of what counts here, and the plan for it.

The law: pure; what it gives depends on the objects alone and not on the order in which their changes came. An object is
read once, when it changes, so that a plan for thousands of Services takes milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import ip_network

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import Unreadable
from wholeip.addresses import Address, Network, Protected
from wholeip.endpoints import candidates, service_key
from wholeip.nodes import Node, addresses_of, pod_networks_of
from wholeip.plan import NOTHING_IN_USE, InUse, Plan, Pods, make_plan
from wholeip.services import ManagedService, Service, read_service

_FAMILIES = (4, 6)


class ClusterState:
    """Services, slices and nodes by their keys."""

    def __init__(
        self, *, node: str | None = None, protected: tuple[Network, ...] = (), cluster: tuple[Network, ...] = ()
    ) -> None:
        """`node` is the name of the node to plan for; the networks are those that an operator has stated."""
        self._node = node
        self._protected = protected
        self._cluster = cluster
        self._services: dict[str, ManagedService] = {}
        self._owners: dict[str, str] = {}
        """By slice, the Service that it belongs to."""
        self._slices: defaultdict[str, dict[str, EndpointSlice]] = defaultdict(dict)
        """By Service."""
        self._pods: dict[str, Pods] = {}
        """By Service: what its slices come to."""
        self._nodes: dict[str, frozenset[Address]] = {}
        self._pod_networks: dict[str, frozenset[Network]] = {}

    def __len__(self) -> int:
        """How many Services there are."""
        return len(self._services)

    def change_services(self, changes: Mapping[str, Service | Unreadable | None]) -> None:
        """Take changes in, by NAMESPACE/NAME."""
        for key, service in changes.items():
            if service is None:
                self._services.pop(key, None)
            else:
                self._services[key] = read_service(service)

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
        for name, node in changes.items():
            if node is None:
                self._nodes.pop(name, None)
                self._pod_networks.pop(name, None)
            else:
                self._nodes[name] = addresses_of(node)
                self._pod_networks[name] = pod_networks_of(node)

    @property
    def networks(self) -> tuple[Network, ...]:
        """Those of the cluster: stated ones, those of pods, and the nodes."""
        nodes = {ip_network(str(address)) for addresses in self._nodes.values() for address in addresses}
        pods = frozenset[Network]().union(*self._pod_networks.values())
        return tuple({*self._cluster, *pods, *nodes})

    def advise(self) -> Iterator[str]:
        """What an operator has to say for all to work, as far as the cluster does not."""
        if self._node is not None and self._node not in self._nodes:
            yield f"the cluster has no Node {self._node} that we may see: --node-name says which one this is"
        if not self._cluster and not any(self._pod_networks.values()):
            yield "no network of the cluster's pods is known: --cluster-network says it"

    def plan(self, in_use: InUse = NOTHING_IN_USE) -> Plan:
        """What is to be, for what is known now."""
        nodes = frozenset[Address]().union(*self._nodes.values())
        protected = Protected(nodes, self._protected)
        return make_plan(self._services.values(), self._pods, in_use=in_use, protected=protected, node=self._node)

    def _read_pods(self, owner: str) -> None:
        slices = self._slices[owner]
        if slices:
            self._pods[owner] = {version: candidates(slices.values(), version) for version in _FAMILIES}
        else:
            del self._slices[owner]
            self._pods.pop(owner, None)
