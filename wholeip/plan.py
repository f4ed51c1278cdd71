"""The plan: from Services and the pods behind them to the mappings that a node is to have.

The law: pure, and the same for the same objects, in whatever order they came. Each Service gets what it asks for unless
an older one has it; a pod that has an address keeps it while it is ready.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Mapping as AbstractMapping
from dataclasses import dataclass, field
from typing import Final

from wholeip.addresses import Address, Protected
from wholeip.endpoints import Candidates, Pod
from wholeip.mapping import Mapping, OpenPort
from wholeip.reports import Reason, Report
from wholeip.services import ManagedService

Pods = AbstractMapping[int, Candidates]
"""The pods behind one Service, by family (4, 6)."""
InUse = frozenset[tuple[str | None, Address, Address]]
"""Service (None: any), load balancer's address, and pod that has it now."""

NOTHING_IN_USE: Final[InUse] = frozenset()
_UNPROTECTED: Final = Protected()
_NO_PODS: Final = Candidates()
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be, those of older Services first, and what there is to say about it, by Service."""

    mappings: tuple[Mapping, ...] = ()
    reports: tuple[Report, ...] = ()

    @property
    def in_use(self) -> InUse:
        """For the next plan: which pods have an address now."""
        return frozenset((one.service, one.address, one.endpoint) for one in self.mappings)


def make_plan(
    services: Iterable[ManagedService],
    pods: AbstractMapping[str, Pods],
    *,
    in_use: InUse = NOTHING_IN_USE,
    protected: Protected = _UNPROTECTED,
    node: str | None = None,
) -> Plan:
    """What these Services and the pods behind them (by NAMESPACE/NAME) come to on a node.

    `in_use` is as Plan.in_use had it. Without a node, every pod is taken to run here.
    """
    services = sorted(services, key=lambda one: one.age)
    planner = _Planner(pods, in_use, protected, node)
    # A set of sets, whose hashes are there.
    planner.pods_of_all.update(
        *(found.addresses for service in services for found in pods.get(service.key, {}).values())
    )
    for service in services:
        planner.add(service)
    return Plan(tuple(planner.mappings), tuple(sorted({*planner.reports})))


@dataclass(slots=True)
class _Planner:
    pods: AbstractMapping[str, Pods]
    in_use: InUse
    protected: Protected
    node: str | None
    pods_of_all: set[Address] = field(default_factory=set)
    mappings: list[Mapping] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    holders: dict[Address, list[Mapping]] = field(default_factory=lambda: defaultdict(list))
    """By the load balancer's address, the older first."""
    egress: dict[Address, Mapping] = field(default_factory=dict)
    """By pod."""
    used: dict[tuple[str | None, Address], set[Address]] | None = None
    """What `in_use` says, once somebody wants to know."""

    def add(self, service: ManagedService) -> None:
        """Map what can be mapped of one Service; the older ones have been."""
        self.reports += service.reports
        chosen = {version: self.choose(service, version) for version in {one.version for one in service.addresses}}
        for address in service.addresses:
            pod = chosen[address.version]
            if pod is None:
                self.report(
                    service, Reason.NO_ENDPOINT, f"{address} (IPv{address.version}): {self.why(service, address)}"
                )
            elif not self.refuse(service, address, pod):
                self.map(service, address, pod)

    def why(self, service: ManagedService, address: Address) -> str:
        """Why there is no pod for an address."""
        if service.key not in self.pods:
            return "no pod is ready; there is no EndpointSlice with its label"
        return self.pods[service.key].get(address.version, _NO_PODS).describe_none()

    def choose(self, service: ManagedService, version: int) -> Pod | None:
        """One pod for all addresses of a family: it could have the egress of one only."""
        found = self.pods.get(service.key, {}).get(version, _NO_PODS)
        pod = found.choose(
            lambda: self.have_now(service.key, service, version) or self.have_now(None, service, version)
        )
        if pod is not None and len(found.ready) > 1:
            shown = ", ".join(str(one.address) for one in found.ready[:_SHOWN])
            more = ", ..." if len(found.ready) > _SHOWN else ""
            text = f"{pod.address} has the address; more pods than one are ready: {shown}{more}"
            self.report(service, Reason.SEVERAL_ENDPOINTS, text)
        return pod

    def have_now(self, key: str | None, service: ManagedService, version: int) -> set[Address]:
        """The pods that have addresses of the Service now, as far as this key says so."""
        if self.used is None:
            self.used = defaultdict(set)
            for owner, address, pod in self.in_use:
                self.used[owner, address].add(pod)
        addresses = (one for one in service.addresses if one.version == version)
        return {pod for address in addresses for pod in self.used.get((key, address), ())}

    def refuse(self, service: ManagedService, address: Address, pod: Pod) -> bool:
        """Whether nobody may have this."""
        why_not = self.protected.refusal(address)
        if address in self.pods_of_all:
            why_not = "it is a pod's own"
        if why_not is None and (of_pod := self.protected.refusal(pod.address)):
            why_not = f"its pod has the address {pod.address}, and {of_pod}"
        if why_not is not None:
            self.report(service, Reason.PROTECTED_ADDRESS, f"{address}: {why_not}")
        return why_not is not None

    def map(self, service: ManagedService, address: Address, pod: Pod) -> None:
        """Add one mapping, as far as older ones leave room for it."""
        for older in self.holders[address]:
            if clash := _clash(older.opened, service.opened):
                self.report(service, Reason.ADDRESS_TAKEN, f"{address}: the older {older.service} has {clash}")
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
            text = f"{address}: what {pod.address} begins leaves with {owner.address} of {_owner(owner, service)}"
            self.report(service, Reason.EGRESS_TAKEN, text)
        self.holders[address].append(mapping)
        self.mappings.append(mapping)

    def report(self, service: ManagedService, reason: Reason, detail: str) -> None:
        self.reports.append(Report(service.key, reason, detail))


def _clash(older: frozenset[OpenPort] | None, younger: frozenset[OpenPort] | None) -> str | None:
    """What two Services on one address both want, in words; None where they can share it."""
    if older is None:
        return "all of it"
    if younger is None:
        return "a part of it"
    both = sorted(older & younger)
    return " and ".join(f"{one.protocol} {one.number}" for one in both[:_SHOWN]) if both else None


def _owner(owner: Mapping, service: ManagedService) -> str:
    return "the same Service" if owner.service == service.key else f"the older {owner.service}"
