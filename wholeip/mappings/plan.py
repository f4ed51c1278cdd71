"""Plans the mappings of a node from Services and their pods.

The law: the plan depends on the objects alone, not on their order. Each Service gets what it asks for unless an older
Service has it; a pod that has an address keeps it while it is ready. Services affect one another only if they share an
address, of a load balancer or of a pod: a Service that shares none has the same part in every plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as AbstractMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from wholeip.mappings.addresses import Address
from wholeip.mappings.endpoints import Candidates, Pod
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.mappings.protected import Protected
from wholeip.mappings.reports import Reason, Report
from wholeip.mappings.services import ManagedService

Pods = AbstractMapping[int, Candidates]
"""The pods of one Service, by family (4, 6)."""
InUse = frozenset[tuple[str | None, Address, Address]]
"""Service (None: any), address of the load balancer, and the pod that has it now."""

NOTHING_IN_USE: Final[InUse] = frozenset()
_UNPROTECTED: Final = Protected()
_NO_PODS: Final = Candidates()
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Part:
    """The mappings and reports of one Service."""

    mappings: tuple[Mapping, ...] = ()
    """In the order of its addresses."""
    reports: tuple[Report, ...] = ()
    """Sorted."""
    created: str = ""
    """When the Service was created (RFC 3339)."""
    uid: str = ""
    """The Service's."""


_NO_PART: Final = Part()


@dataclass(frozen=True)
class Plan:
    """The desired mappings, by Service (NAMESPACE/NAME)."""

    parts: AbstractMapping[str, Part] = field(default_factory=dict)

    @cached_property
    def mappings(self) -> tuple[Mapping, ...]:
        """All mappings, those of older Services first: sorted, while mapping_count and parts cost nothing."""
        by_age = sorted(self.parts.items(), key=lambda item: (item[1].created, item[0]))
        return tuple(one for _, part in by_age for one in part.mappings)

    @property
    def mapping_count(self) -> int:
        """The number of all mappings."""
        return sum(len(part.mappings) for part in self.parts.values())

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """All reports, sorted by Service."""
        return tuple(sorted(self.each_report()))

    def each_report(self) -> Iterator[Report]:
        """The same in any order."""
        return (one for part in self.parts.values() for one in part.reports)

    def part(self, service: str) -> Part:
        """The part of a Service; an empty one if it is not in the plan."""
        return self.parts.get(service, _NO_PART)

    def mappings_of(self, services: Iterable[str]) -> list[Mapping]:
        """The mappings of some Services."""
        return [one for service in services for one in self.part(service).mappings]

    def in_use(self, services: Iterable[str] | None = None) -> InUse:
        """The pods that have an address now, for the next plan; of all Services or of some."""
        mappings = self.mappings if services is None else self.mappings_of(services)
        return frozenset((one.service, one.address, one.endpoint) for one in mappings)

    def replacing(self, services: AbstractSet[str], new: Plan) -> Plan:
        """The same plan with the parts of these Services from another plan, without those that it lacks."""
        parts = {**self.parts, **new.parts}
        for gone in services - new.parts.keys():
            parts.pop(gone, None)
        return Plan(parts)


def make_plan(
    services: Iterable[ManagedService],
    pods: AbstractMapping[str, Pods],
    *,
    in_use: InUse = NOTHING_IN_USE,
    protected: Protected = _UNPROTECTED,
    node: str | None = None,
) -> Plan:
    """The plan of a node for these Services and their pods (by NAMESPACE/NAME).

    `in_use` is the result of Plan.in_use. Without a node, every pod counts as running here.
    """
    services = sorted(services, key=lambda one: one.age)
    planner = _Planner(pods, in_use, protected, node)
    # From sets, whose hashes are computed already.
    planner.cluster_ips.update(*(service.cluster_ips for service in services))
    found = set[Address]().union(*(one.addresses for service in services for one in pods.get(service.key, {}).values()))
    # An endpoint that is no pod of the cluster must not cost another Service its address.
    planner.pods_of_all = {one for one in found if not protected.refusal_of_pod(one, cluster_ips=planner.cluster_ips)}
    return Plan({service.key: planner.add(service) for service in services})


@dataclass(slots=True)
class _Planner:
    pods: AbstractMapping[str, Pods]
    in_use: InUse
    protected: Protected
    node: str | None
    pods_of_all: set[Address] = field(default_factory=set)
    cluster_ips: set[Address] = field(default_factory=set)
    """Of all Services."""
    mappings: list[Mapping] = field(default_factory=list)
    """The mappings of the Service that is added now."""
    reports: list[Report] = field(default_factory=list)
    """The reports of that Service."""
    holders: dict[Address, list[Mapping]] = field(default_factory=lambda: defaultdict(list))
    """By address of the load balancer, the older Service first."""
    egress: dict[Address, Mapping] = field(default_factory=dict)
    """By address of the pod."""
    used: dict[tuple[str | None, Address], set[Address]] | None = None
    """`in_use` by Service and address, computed at the first use."""

    def add(self, service: ManagedService) -> Part:
        """Map the addresses of one Service, after all older Services."""
        self.mappings, self.reports = [], [*service.reports]
        chosen = {version: self.choose(service, version) for version in {one.version for one in service.addresses}}
        for address in service.addresses:
            pod = chosen[address.version]
            if pod is None:
                reason, text = self.no_pod_reason(service, address)
                self.report(service, reason, f"{address} (IPv{address.version}): {text}")
            elif not self.refuse(service, address, pod):
                self.map(service, address, pod)
        for version in chosen:
            self.report_several(service, version)
        return Part(tuple(self.mappings), tuple(sorted({*self.reports})), service.created, service.uid)

    def no_pod_reason(self, service: ManagedService, address: Address) -> tuple[Reason, str]:
        """Why an address has no pod."""
        if service.key not in self.pods:
            return Reason.NO_ENDPOINT, "no pod is ready; there is no EndpointSlice with its label"
        found = self.pods[service.key].get(address.version, _NO_PODS)
        return Reason.FOREIGN_ENDPOINT if found.foreign else Reason.NO_ENDPOINT, found.describe_none()

    def choose(self, service: ManagedService, version: int) -> Pod | None:
        """One pod for all addresses of a family: its egress can use one of them only."""
        found = self.pods.get(service.key, {}).get(version, _NO_PODS)
        return found.choose(
            lambda: self.have_now(service.key, service, version) or self.have_now(None, service, version)
        )

    def report_several(self, service: ManagedService, version: int) -> None:
        """Report which of several pods has the address; a refused or taken address belongs to none of them."""
        ready = self.pods.get(service.key, {}).get(version, _NO_PODS).ready
        holder = next((one.endpoint for one in self.mappings if one.address.version == version), None)
        if holder is not None and len(ready) > 1:
            shown = ", ".join(str(one.address) for one in ready[:_SHOWN])
            more = ", ..." if len(ready) > _SHOWN else ""
            text = f"{holder} has the address; more pods than one are ready: {shown}{more}"
            self.report(service, Reason.SEVERAL_ENDPOINTS, text)

    def have_now(self, key: str | None, service: ManagedService, version: int) -> set[Address]:
        """The pods that have addresses of the Service now, by the entries of this key."""
        if self.used is None:
            self.used = defaultdict(set)
            for owner, address, pod in self.in_use:
                self.used[owner, address].add(pod)
        addresses = (one for one in service.addresses if one.version == version)
        having = {pod for address in addresses for pod in self.used.get((key, address), ())}
        # A pod that is refused from now on has the address no longer: the next plan would not know of it.
        return {pod for pod in having if not self.protected.refusal_of_pod(pod, cluster_ips=self.cluster_ips)}

    def refuse(self, service: ManagedService, address: Address, pod: Pod) -> bool:
        """Whether this address is never mapped to this pod."""
        protected, cluster_ips = self.protected, self.cluster_ips
        refusal = protected.refusal_of_address(address, pods=self.pods_of_all, cluster_ips=cluster_ips)
        if refusal is None:
            refusal = protected.refusal_of_pod(pod.address, cluster_ips=cluster_ips)
        if refusal is not None:
            self.report(service, refusal.reason, f"{address}: {refusal.text}")
        return refusal is not None

    def map(self, service: ManagedService, address: Address, pod: Pod) -> None:
        """Add one mapping, unless an older one has the address."""
        for older in self.holders[address]:
            if clash := _clash(older.opened, service.opened):
                text = f"{address}: the older {older.service} has {clash}"
                self.report(service, Reason.ADDRESS_TAKEN, text, other=older.service)
                return
        holder = next((one for one in self.holders[address] if one.icmp), None)
        has_icmp = service.icmp and (holder is None or holder.endpoint == pod.address)
        if service.icmp and service.opened is not None and not has_icmp and holder is not None:
            self.report(service, Reason.ICMP_TAKEN, f"{address}: the older {holder.service} answers ICMP")
        owner = self.egress.get(pod.address)
        mapping = Mapping(
            service=service.key,
            address=address,
            endpoint=pod.address,
            opened=service.opened,
            icmp=service.opened is None or has_icmp,
            egress=owner is None,
            here=self.node is None or pod.node is None or pod.node == self.node,
        )
        if owner is None:
            self.egress[pod.address] = mapping
        elif owner.address != address:
            text = f"{address}: connections from {pod.address} leave with {owner.address} of {_owner(owner, service)}"
            self.report(service, Reason.EGRESS_TAKEN, text)
        self.holders[address].append(mapping)
        self.mappings.append(mapping)

    def report(self, service: ManagedService, reason: Reason, detail: str, *, other: str = "") -> None:
        self.reports.append(Report(service.key, reason, detail, other))


def _clash(older: frozenset[OpenPort] | None, younger: frozenset[OpenPort] | None) -> str | None:
    """What two Services on one address both ask for, in words; None if they can share it."""
    if older is None:
        return "all of it"
    if younger is None:
        return "a part of it"
    both = sorted(older & younger)
    return " and ".join(f"{one.protocol} {one.number}" for one in both[:_SHOWN]) if both else None


def _owner(owner: Mapping, service: ManagedService) -> str:
    return "the same Service" if owner.service == service.key else f"the older {owner.service}"
