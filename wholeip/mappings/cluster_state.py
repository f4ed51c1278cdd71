"""The known Services, slices and nodes of a cluster, and the plan for them.

The law: the plan depends on the objects alone, not on the order of their changes. An object is read once, when it
changes, and a change reports which Services must be planned again because of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import Unreadable
from wholeip.mappings.addresses import Address, Network
from wholeip.mappings.api_server import ApiService, ServiceRange
from wholeip.mappings.cluster_networks import NOTHING_STATED, ClusterNetworks, StatedNetworks
from wholeip.mappings.endpoints import candidates, service_key
from wholeip.mappings.networks import NetworkSet
from wholeip.mappings.nodes import Node
from wholeip.mappings.plan import NOTHING_IN_USE, InUse, Plan, Pods, make_plan
from wholeip.mappings.pods import KnownPods, PodObject, Proof
from wholeip.mappings.services import ManagedService, Service, read_service
from wholeip.mappings.sharing import Sharing

_FAMILIES = (4, 6)


class ClusterState:
    """Services, slices and nodes by their keys."""

    def __init__(
        self,
        *,
        node: str | None = None,
        stated: StatedNetworks = NOTHING_STATED,
        proof: Proof = Proof.REFERENCED,
    ) -> None:
        """`node` is the name of the node to plan for; `stated` has the networks of the flags."""
        self._node = node
        self._services: dict[str, ManagedService] = {}
        self._owners: dict[str, str] = {}
        """The Service of each slice."""
        self._slices: defaultdict[str, dict[str, EndpointSlice]] = defaultdict(dict)
        """By Service."""
        self._known_pods = KnownPods(proof)
        self._pods: dict[str, Pods] = {}
        """By Service: the pods of its slices."""
        self._cluster = ClusterNetworks(stated)
        self._protected = self._cluster.protected()
        self._networks = self._cluster.inside()
        self._sharing = Sharing()
        self._touched: set[str] = set()

    def __len__(self) -> int:
        """The number of Services."""
        return len(self._services)

    def change_services(self, changes: Mapping[str, Service | Unreadable | None]) -> None:
        """Apply changes, by NAMESPACE/NAME; None: deleted."""
        for key, service in changes.items():
            known, found = self._services.pop(key, None), None if service is None else read_service(service)
            if found is not None:
                self._services[key] = found
            if found != known:
                self._touch(key)

    def change_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        """Apply changes, by NAMESPACE/NAME; None: deleted. An unreadable slice counts as deleted."""
        touched = set()
        for key, one in changes.items():
            before = after = None
            if (owner := self._owners.pop(key, None)) is not None:
                before = self._slices[owner].pop(key)
                touched.add(owner)
            if isinstance(one, EndpointSlice) and (owner := service_key(one)) is not None:
                self._owners[key] = owner
                self._slices[owner][key] = after = one
                touched.add(owner)
            self._known_pods.refer(key, before, after)
        for owner in touched:
            self._read_pods(owner)

    def change_pods(self, changes: Mapping[str, PodObject | Unreadable | None]) -> None:
        """Apply changes, by NAMESPACE/NAME; None: deleted. Without --endpoints verified they change no plan."""
        for owner in {self._owners[key] for key in self._known_pods.change(changes)}:
            self._read_pods(owner)

    @property
    def proof(self) -> Proof:
        """What an endpoint needs to count as a Pod."""
        return self._known_pods.proof

    def change_nodes(self, changes: Mapping[str, Node | Unreadable | None]) -> None:
        """Apply changes, by name; None: deleted."""
        if self._cluster.change_nodes(changes):
            self._networks = self._cluster.inside()
            self._read_protected()

    def change_ranges(self, changes: Mapping[str, ServiceRange | Unreadable | None]) -> None:
        """The same for the ranges of cluster IPs."""
        if self._cluster.change_ranges(changes):
            self._read_protected()

    def change_api_services(self, changes: Mapping[str, ApiService | Unreadable | None]) -> None:
        """The same for the Service of the API server, by NAMESPACE/NAME."""
        if self._cluster.change_api_services(changes):
            self._read_protected()

    def change_api_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        """The same for its slices."""
        if self._cluster.change_api_slices(changes):
            self._read_protected()

    def add_api_addresses(self, addresses: frozenset[Address]) -> None:
        """The API server has these addresses too."""
        self._cluster.add_api_addresses(addresses)
        self._read_protected()

    @property
    def api_addresses(self) -> frozenset[Address]:
        """The addresses of the API server that do not come from objects."""
        return self._cluster.stated.api_servers

    @property
    def networks(self) -> frozenset[Network]:
        """The networks of the cluster: of the flags, of pods, and of nodes."""
        return self._networks

    @property
    def nodes(self) -> AbstractSet[str]:
        """The names of the cluster's Nodes, as far as they are known."""
        return self._cluster.nodes.keys()

    def advise(self) -> Iterator[str]:
        """The flags that an operator must set because the cluster does not tell."""
        if self._node is not None and self._node not in self._cluster.nodes:
            yield (
                f"the cluster shows no Node {self._node}: set --node-name to the name of this node, or allow the agent "
                "to list and watch nodes"
            )
        yield from self._cluster.advise()

    def plan(self, in_use: InUse = NOTHING_IN_USE) -> Plan:
        """The plan for the present state."""
        return self._plan(self._services.values(), in_use)

    def plan_of(self, services: AbstractSet[str], in_use: InUse) -> Plan:
        """The parts of these Services in the plan; no other Service may share an address with them."""
        return self._plan((self._services[key] for key in services if key in self._services), in_use)

    def take_touched(self) -> AbstractSet[str]:
        """The Services whose parts may have changed since the last call, deleted ones too; for plan_of."""
        touched, self._touched = self._touched, set()
        return self._sharing.reach(touched)

    def _plan(self, services: Iterable[ManagedService], in_use: InUse) -> Plan:
        return make_plan(services, self._pods, in_use=in_use, protected=self._protected, node=self._node)

    def _touch(self, key: str) -> None:
        """Services that shared an address may get it now; those that will share one are found by take_touched."""
        self._touched |= {key, *self._sharing.put(key, self._addresses(key))}

    def _addresses(self, key: str) -> frozenset[Address]:
        """The addresses through which a Service and others affect one another."""
        service = self._services.get(key)
        if service is None:
            return frozenset()
        return service.cluster_ips.union(
            service.addresses, *(found.addresses for found in self._pods.get(key, {}).values())
        )

    def _read_pods(self, owner: str) -> None:
        slices, known = self._slices[owner], self._pods.pop(owner, None)
        if slices:
            self._pods[owner] = {
                version: candidates(slices.values(), version, self._known_pods) for version in _FAMILIES
            }
        else:
            del self._slices[owner]
        if self._pods.get(owner) != known:
            self._touch(owner)

    def _read_protected(self) -> None:
        """Services with an address that is protected now, or no longer, are planned again."""
        before, after = self._protected, self._cluster.protected()
        self._protected = after
        if any(before.knows_pods(version) != after.knows_pods(version) for version in _FAMILIES):
            self._touched |= self._services.keys()
            return
        # Kind by kind: an address may become a node's that was the API server's, and the report names one of them.
        for address in (before.nodes ^ after.nodes) | (before.api_servers ^ after.api_servers):
            self._touched |= self._sharing.at(address)
        if changed := before.changed_networks(after):
            self._touched |= self._sharing.within(NetworkSet(changed))
