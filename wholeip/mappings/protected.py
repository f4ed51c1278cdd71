"""Decides which addresses of a cluster are never mapped, and which endpoints are not pods of the cluster.

The law: the cluster's own addresses are refused whatever a load balancer's status or a slice says. Otherwise a writer
of a status receives what a node's programs send to the API server or to the cluster DNS, and a writer of a slice gives
the address of a load balancer to a host on the Internet.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from wholeip.mappings.addresses import Address, Network
from wholeip.mappings.networks import NetworkSet
from wholeip.mappings.reports import Reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is not mapped."""

    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Protected:
    """The addresses and networks of this cluster."""

    nodes: frozenset[Address] = frozenset()
    api_servers: frozenset[Address] = frozenset()
    """The cluster IPs of the Service kubernetes, its endpoints, and the address that the agent dials."""
    protected: NetworkSet = field(default_factory=NetworkSet)
    """From --protect."""
    allowed: NetworkSet = field(default_factory=NetworkSet)
    """From --allow."""
    stated: NetworkSet = field(default_factory=NetworkSet)
    """From --cluster-network."""
    pods: NetworkSet = field(default_factory=NetworkSet)
    """Of the nodes' pods."""
    services: NetworkSet = field(default_factory=NetworkSet)
    """The ranges of cluster IPs."""
    around_api_server: NetworkSet = field(default_factory=NetworkSet)
    """The networks around cluster IPs of the Service kubernetes whose range is not known."""

    def changed_networks(self, other: Protected) -> frozenset[Network]:
        """The networks of the cluster that are in one of two states alone, or there for another reason."""
        pods, services = self.pods.networks ^ other.pods.networks, self.services.networks ^ other.services.networks
        return pods | services | (self.around_api_server.networks ^ other.around_api_server.networks)

    def knows_pods(self, version: int) -> bool:
        """Whether a network of pods of this family (4, 6) is known."""
        return self.pods.has_family(version) or self.stated.has_family(version)

    def refusal_of_address(
        self, address: Address, *, pods: AbstractSet[Address] = frozenset(), cluster_ips: AbstractSet[Address]
    ) -> Refusal | None:
        """Why a load balancer's address is not mapped, or None if it may be.

        `pods` has the addresses of the cluster's pods, `cluster_ips` those of its Services, as far as they are known.
        """
        if address in pods:
            return Refusal(Reason.PROTECTED_ADDRESS, "it is a pod's own")
        if found := self._refusal(address, cluster_ips):
            return found
        if network := self.pods.find(address):
            return Refusal(Reason.CLUSTER_ADDRESS, f"{network} is a network of a node's pods")
        if self.allowed:
            return None if self.allowed.find(address) else Refusal(Reason.NOT_ALLOWED, "no --allow network has it")
        if network := self.stated.find(address):
            text = f"{network} is a network of the cluster (--cluster-network); --allow makes an exception"
            return Refusal(Reason.CLUSTER_ADDRESS, text)
        return None

    def refusal_of_pod(self, pod: Address, *, cluster_ips: AbstractSet[Address]) -> Refusal | None:
        """Why no address is mapped to an endpoint, or None if it may be a pod of the cluster."""
        if found := self._refusal(pod, cluster_ips):
            return Refusal(found.reason, f"its pod has the address {pod}, and {found.text}")
        if self.pods.find(pod):
            return None
        if self.stated.find(pod):
            if (network := self._exception(pod)) is None:
                return None
            # Else a slice that lists another tenant's address would make it a pod's own, and nobody's.
            text = f"its pod has the address {pod}, and {network} has addresses of load balancers (--allow)"
            return Refusal(Reason.FOREIGN_ENDPOINT, text)
        if self.knows_pods(pod.version):
            text = f"its pod has the address {pod}, which no network of the cluster has; --cluster-network adds one"
            return Refusal(Reason.FOREIGN_ENDPOINT, text)
        if pod.is_global:
            unknown = f"no IPv{pod.version} network of the cluster's pods is known: set --cluster-network"
            return Refusal(Reason.FOREIGN_ENDPOINT, f"its pod has the public address {pod}, and {unknown}")
        return None

    def _exception(self, address: Address) -> Network | None:
        """The network of --allow that is an exception from all stated networks with this address."""
        stated = max(one.prefixlen for one in self.stated.networks if address in one)
        exceptions = (one for one in self.allowed.networks if address in one and one.prefixlen > stated)
        return min(exceptions, key=lambda one: one.prefixlen, default=None)

    def _refusal(self, address: Address, cluster_ips: AbstractSet[Address]) -> Refusal | None:
        if address in self.nodes:
            return Refusal(Reason.PROTECTED_ADDRESS, "it is a node's own")
        if address in self.api_servers:
            return Refusal(Reason.CLUSTER_ADDRESS, "it is the API server's")
        if address in cluster_ips:
            return Refusal(Reason.CLUSTER_ADDRESS, "it is the cluster IP of a Service")
        if network := self.protected.find(address):
            return Refusal(Reason.PROTECTED_ADDRESS, f"{network} is protected (--protect)")
        if network := self.services.find(address):
            return Refusal(Reason.CLUSTER_ADDRESS, f"{network} has the cluster IPs of Services")
        if network := self.around_api_server.find(address):
            text = f"{network} has the cluster IP of the API server, and the range of Services is not known"
            return Refusal(Reason.CLUSTER_ADDRESS, text)
        return None
