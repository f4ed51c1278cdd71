"""Host groups: hosts that enter through the same Services and resolve to the same addresses share one judgement.

The law: every host is in exactly one group. A host that was not looked up belongs to the largest group of its Services,
so that thousands of hosts need some hundred look-ups. Tested in tests/dnsproxy/doctor/judge/test_host_groups.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.paths import Paths, name_to_ask

CLUSTER: Final = "cluster"
PUBLIC: Final = "public"


@dataclass(frozen=True, slots=True)
class HostGroup:
    """Hosts with the same Services and the same answers."""

    sample: str
    """The hostname that is dialled for all of them."""
    hosts: tuple[Host, ...]
    """Empty for a requested hostname that no object serves."""
    services: tuple[str, ...]
    """`NAMESPACE/NAME` of each Service through which they enter; empty if none matches."""
    tls: bool = False
    """Whether their objects have TLS for them."""
    asked: bool = False
    """Whether the cluster's DNS was asked."""
    answers: tuple[str, ...] = ()
    """The addresses that the cluster's DNS answers."""
    fault: str = ""
    """Why the cluster's DNS gave no answer."""
    public: tuple[str, ...] = ()
    """The addresses that public DNS answers."""
    partial: str = ""
    """Which record types the cluster's DNS left without an answer: `AAAA: no answer`."""
    late: int = 0
    """How many of its hostnames were not looked up, because there are too many."""

    @property
    def hostnames(self) -> tuple[str, ...]:
        """Each hostname once, sorted."""
        return tuple(sorted({host.hostname for host in self.hosts}))

    @property
    def ingress_class(self) -> str:
        """The class of its hosts, as a flag takes it; `CLASS` if no host has one."""
        return next((host.ingress_class for host in self.hosts if host.ingress_class), "CLASS")

    @property
    def is_wild(self) -> bool:
        """Whether it has only wildcards, so that the names in use are unknown."""
        return bool(self.hosts) and all(is_wildcard(host.hostname) for host in self.hosts)


@dataclass(slots=True)
class _Gathered:
    """The hosts of one hostname, with the Services of all of them."""

    hosts: list[Host]
    services: dict[str, None]


def find_groups(facts: Facts, paths: Paths, lookups: Iterable[Lookup] | None = None) -> tuple[HostGroup, ...]:
    """The groups, the largest first; `lookups` instead of those in the facts, for a caller that collects them."""
    found = {(one.hostname, one.server): one for one in (facts.lookups if lookups is None else lookups)}
    if facts.hostname:
        return (_requested(facts.hostname, _gather(paths), found),)
    groups: dict[object, list[HostGroup]] = {}
    late: list[HostGroup] = []
    for hostname, gathered in _gather(paths).items():
        group = _group(hostname, gathered, found)
        if found and not group.asked and not group.public:
            late.append(group)
        else:
            groups.setdefault(_key(group), []).append(group)
    largest = _largest(groups)
    for group in late:
        groups.setdefault(largest.get(group.services, _key(group)), []).append(group)
    merged = map(_merged, groups.values())
    return tuple(sorted(merged, key=lambda one: (-len(one.hosts), one.sample)))


def _gather(paths: Paths) -> dict[str, _Gathered]:
    found: dict[str, _Gathered] = {}
    for path in paths.paths:
        for host in path.hosts:
            one = found.setdefault(host.hostname, _Gathered([], {}))
            one.hosts.append(host)
            one.services[path.service.key] = None
    for host in paths.unmatched:
        found.setdefault(host.hostname, _Gathered([], {})).hosts.append(host)
    return found


def _requested(hostname: str, gathered: Mapping[str, _Gathered], found: Mapping[tuple[str, str], Lookup]) -> HostGroup:
    """The one group of a diagnosis of one hostname, which a wildcard may serve."""
    hosts = list(dict.fromkeys(host for one in gathered.values() for host in one.hosts))
    services = {key: None for one in gathered.values() for key in one.services}
    return _group(hostname, _Gathered(hosts, services), found)


def _group(hostname: str, gathered: _Gathered, found: Mapping[tuple[str, str], Lookup]) -> HostGroup:
    cluster, public = found.get((hostname, CLUSTER)), found.get((hostname, PUBLIC))
    return HostGroup(
        name_to_ask(hostname),
        tuple(dict.fromkeys(gathered.hosts)),
        tuple(sorted(gathered.services)),
        any(host.tls for host in gathered.hosts),
        cluster is not None,
        cluster.addresses if cluster else (),
        cluster.fault if cluster else "",
        public.addresses if public else (),
        cluster.partial if cluster else "",
    )


def _key(group: HostGroup) -> object:
    # Without an answer, a wildcard says nothing about the hosts beside it.
    wild = group.is_wild and not group.answers
    return group.services, group.tls, group.asked, group.answers, group.fault, group.public, group.partial, wild


def _largest(groups: Mapping[object, list[HostGroup]]) -> dict[tuple[str, ...], object]:
    """The key of the largest group with an answer, for each set of Services."""
    answered = [(key, members) for key, members in groups.items() if members[0].answers]
    return {members[0].services: key for key, members in sorted(answered, key=lambda pair: len(pair[1]))}


def _merged(members: list[HostGroup]) -> HostGroup:
    late = sum(not one.asked for one in members) if members[0].asked else 0
    return replace(members[0], hosts=tuple(host for one in members for host in one.hosts), late=late)
