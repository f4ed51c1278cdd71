"""Ways: what a pod gets for the hosts of one group, by the addresses that the cluster's DNS answers and by the others.

The law: an address that the cluster's DNS answers is a pod's way; an address of a status or of public DNS is what its
way would be without Switchback, or what other clients use. Each address has the owner that the facts show. Tested in
tests/dnsproxy/doctor/judge/test_ways.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from dnsproxy.dns.addresses import is_address
from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.facts.probes import Lookup, Outcome, Probe
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.header_mode import usable_probes
from dnsproxy.doctor.judge.host_groups import PUBLIC, HostGroup
from dnsproxy.doctor.judge.paths import entries_of, normalize_address, relay_addresses
from dnsproxy.doctor.judge.reach import FAILING, AddressReach, ProbeIndex, Reach, overall_reach, routed


@dataclass(frozen=True, slots=True)
class Ways:
    """One group with what its pods get."""

    group: HostGroup
    controllers: tuple[Controller, ...]
    """Those of its Services; empty if no Service matches."""
    answers: tuple[AddressReach, ...]
    """The addresses that the cluster's DNS answers."""
    others: tuple[AddressReach, ...]
    """The addresses of load balancers and of public DNS that it does not answer."""
    ours: frozenset[str]
    """The addresses that are right with Switchback: the relay's and the controllers' ClusterIPs."""
    balancers: Mapping[str, frozenset[str]]
    """From the key of each Service to the addresses of its load balancer, those of its hostnames too."""

    @property
    def about(self) -> str:
        """The Services of the controllers, for display."""
        return ", ".join(one.about for one in self.controllers)

    def is_pod_itself(self, address: str) -> bool:
        """Whether a connection to an answer ends in the pod that opens it; no Service of the hosts has the address."""
        return _is_pod_itself(address) and address not in self.ours and not self.owners(address)

    def owners(self, address: str) -> tuple[Controller, ...]:
        """The controllers whose load balancer has an address."""
        return tuple(one for one in self.controllers if address in self.balancers[one.key])

    def for_addresses(self, addresses: Iterable[str]) -> tuple[Controller, ...]:
        """All controllers, those of these addresses first: of a load balancer, or of a ClusterIP."""
        meant = frozenset(map(normalize_address, addresses))
        return tuple(sorted(self.controllers, key=lambda one: meant.isdisjoint(self.balancers[one.key] | one.inner)))

    @property
    def counted(self) -> tuple[AddressReach, ...]:
        """The answers of a family that pods have a route for."""
        return routed(self.answers)

    @property
    def reach(self) -> Reach:
        """What pods get."""
        return overall_reach(self.answers)

    @property
    def failing(self) -> tuple[AddressReach, ...]:
        """The answers at which pods are not served."""
        return tuple(one for one in self.counted if one.reach in FAILING)

    @property
    def refused_handshakes(self) -> tuple[Probe, ...]:
        """The bare connections of hosts with TLS that the server's alert ended before a handshake."""
        bare = (probe for one in self.counted for probe in one.bare if self.group.tls)
        return tuple(probe for probe in bare if probe.outcome is Outcome.ALERT)

    @property
    def is_past(self) -> bool:
        """Whether all answers lead past the load balancer, as those of dnsproxy do."""
        return bool(self.answers) and all(normalize_address(one.address) in self.ours for one in self.answers)

    @property
    def is_served(self) -> bool:
        """Whether pods were seen to be served at all answers."""
        return self.reach is Reach.SERVED

    @property
    def without(self) -> tuple[AddressReach, ...]:
        """Where pods would go without Switchback: the answers that are not its own, or else the other addresses."""
        own = tuple(one for one in self.answers if normalize_address(one.address) not in self.ours)
        return own or self.others

    @property
    def loops_back(self) -> bool:
        """Whether one of its load balancers may return a connection to the node that it came from."""
        return any(one.loops_back for one in self.controllers)

    def may_loop(self, address: str) -> bool:
        """Whether an address is of such a load balancer, or may be: its hostname was not looked up."""
        looping = [one for one in self.controllers if one.loops_back]
        return any(address in self.balancers[one.key] or not self.balancers[one.key] for one in looping)


def make_all_ways(groups: Iterable[HostGroup], controllers: Iterable[Controller], facts: Facts) -> tuple[Ways, ...]:
    """The ways of all groups."""
    index = ProbeIndex(usable_probes(facts.probes))
    by_key = {one.key: one for one in controllers}
    cluster_ips = (normalize_address(ip) for one in facts.services for ip in one.cluster_ips)
    inner = relay_addresses(facts).union(cluster_ips)
    resolved, owned = resolve(facts.lookups), _resolve_by_all(facts.lookups)
    return tuple(_make_ways(group, by_key, index, inner, resolved, owned) for group in groups)


def _make_ways(
    group: HostGroup,
    controllers: Mapping[str, Controller],
    index: ProbeIndex,
    inner: frozenset[str],
    resolved: Mapping[str, tuple[str, ...]],
    owned: Mapping[str, tuple[str, ...]],
) -> Ways:
    own = tuple(controllers[key] for key in group.services if key in controllers)
    answers = _unique(group.answers)
    entries = balancer_addresses(group, (one.path.service for one in own), resolved)
    others = [one for one in _unique(entries) if one not in answers and one not in inner]

    def reach(address: str) -> AddressReach:
        return index.reach(address, group.sample, tls=group.tls)

    balancers = {one.key: frozenset(_unique(_addresses(entries_of(one.path.service), owned))) for one in own}
    known = inner.union(*balancers.values())

    def reach_of_answer(address: str) -> AddressReach:
        # What listens there beside the doctor is no server of other pods.
        astray = _is_pod_itself(address) and address not in known
        return AddressReach(address, Reach.CLOSED) if astray else reach(address)

    return Ways(group, own, tuple(map(reach_of_answer, answers)), tuple(map(reach, others)), inner, balancers)


def balancer_addresses(
    group: HostGroup, services: Iterable[Service], resolved: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The addresses of the load balancers of a group: in statuses, by the hostnames in them, and in public DNS."""
    entries = dict.fromkeys(text for one in services for text in entries_of(one))
    entries |= dict.fromkeys(text for host in group.hosts for text in host.status)
    return (*_addresses(entries, resolved), *group.public)


def _addresses(entries: Iterable[str], resolved: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for text in entries:
        yield from (text,) if is_address(text) else resolved.get(normalize_address(text), ())


def _is_pod_itself(address: str) -> bool:
    """Whether a connection to an address ends in the pod that opens it: loopback, or unspecified."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified


def resolve(lookups: Iterable[Lookup]) -> dict[str, tuple[str, ...]]:
    """The addresses of each hostname: those of public DNS, or else those of the cluster's."""
    found: dict[str, tuple[str, ...]] = {}
    for lookup in sorted(lookups, key=lambda one: one.server != PUBLIC):
        if lookup.addresses:
            found.setdefault(normalize_address(lookup.hostname), lookup.addresses)
    return found


def _resolve_by_all(lookups: Iterable[Lookup]) -> dict[str, tuple[str, ...]]:
    """The addresses of each hostname that any server answers."""
    found: dict[str, tuple[str, ...]] = {}
    for lookup in lookups:
        name = normalize_address(lookup.hostname)
        found[name] = (*found.get(name, ()), *lookup.addresses)
    return found


def _unique(addresses: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(normalize_address, addresses)))
