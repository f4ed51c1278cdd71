"""The findings about lines of the cluster's DNS that answer hosts: before the stanza, or where there is none.

The law: a line is a fault only before a stanza, if pods were seen to fail by its answer, or if nothing shows that they
are served and it does not lead where Switchback does. Without a stanza it is what answers. A line that gives what
dnsproxy answers is no finding. Tested in tests/dnsproxy/doctor/judge/test_answering_lines.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from dnsproxy.cluster_dns.taken_hosts import TakenLine, TakenNameIndex
from dnsproxy.corefile.model import listed
from dnsproxy.corefile.taken_names import TakenNames
from dnsproxy.corefile.zones import is_at_or_below
from dnsproxy.dns.probe import LABEL
from dnsproxy.doctor.facts.cluster_dns import AnsweringLine, ClusterDns
from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.application_answers import is_of_application
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.host_groups import CLUSTER
from dnsproxy.doctor.judge.paths import normalize_address, relay_addresses
from dnsproxy.doctor.judge.remedies import quoted
from dnsproxy.doctor.judge.served_ways import judge_server
from dnsproxy.doctor.judge.ways import Ways

FindLine = Callable[[str], TakenLine | None]
"""The line that takes a hostname before the stanza; without a stanza, the line that takes it."""


class _Effect(Enum):
    """What a line does to a host of a stanza's zones."""

    FAILS = ", and this answer does not serve pods"
    UNSEEN = "; whether this answer serves pods was not seen"
    UNKNOWN = "; whether the relay gets their connections is not known"
    SERVES = "; this answer serves pods"


_SEVERITY: Final[Mapping[_Effect, Severity]] = MappingProxyType(
    {_Effect.FAILS: Severity.PROBLEM, _Effect.UNSEEN: Severity.WARNING}
)


def judge_lines(every: Sequence[Ways], facts: Facts) -> Iterator[Finding]:
    """The findings about all groups: one for each effect, with its lines and hosts."""
    find, looked_up = find_lines(facts), _LookedUp.of(facts)
    installed = bool(_zones(facts))
    found: dict[_Effect | None, dict[str, TakenLine]] = {}
    for ways in every:
        lines = {host: line for host in names_of(ways, facts) if (line := find(host)) is not None}
        # Of a large group, some hosts alone are looked up, and dialled for all that one line takes.
        seen = {line.what for host, line in lines.items() if looked_up.has(host)}
        for host, line in lines.items():
            if installed and not looked_up.would_help(host, ways):
                continue
            effect = _effect(line.what in seen, line, ways, facts) if installed else None
            if effect is not None or not installed:
                found.setdefault(effect, {})[host] = line
    for effect, taken in found.items():
        yield _without_stanza(taken, facts) if effect is None else _before_stanza(effect, taken, facts)


def find_lines(facts: Facts) -> FindLine:
    """Finds the line for hosts; outside the zones of the stanza, no line comes before it."""
    index = TakenNameIndex(map(_line, facts.dns.lines if facts.dns else ()))
    zones = _zones(facts)

    def find(hostname: str) -> TakenLine | None:
        inside = not zones or any(is_at_or_below(f"{hostname}.", zone) for zone in zones)
        return index.first(hostname) if inside else None

    return find


def taken_by_lines(names: Sequence[str], facts: Facts) -> tuple[str, ...]:
    """Which of the names a line takes before a stanza."""
    find = find_lines(facts)
    return tuple(name for name in names if find(name) is not None) if _zones(facts) else ()


def is_explained(ways: Ways, facts: Facts, find: FindLine) -> bool:
    """Whether a line takes each host of a group, and dnsproxy's own answer would be another one, and serve pods."""
    looked_up = _LookedUp.of(facts)
    return all(find(name) is not None and looked_up.would_help(name, ways) for name in names_of(ways, facts))


def names_of(ways: Ways, facts: Facts) -> tuple[str, ...]:
    """The hostnames that a group's clients ask for: of hosts that an object serves."""
    if not ways.group.hosts:
        return ()
    return (facts.hostname,) if facts.hostname else ways.group.hostnames


def before_probes(facts: Facts) -> tuple[str, ...]:
    """The lines that also take the names by which the doctor sees whether the stanza is loaded."""
    find, asked = find_lines(facts), [one.zone for one in facts.loaded if one.state in ("no", "partly")]
    lines = (find(f"{LABEL}.{zone}".strip(".")) for zone in asked if _zones(facts))
    return tuple(dict.fromkeys(line.what for line in lines if line is not None))


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """The answers for each hostname."""

    cluster: Mapping[str, Lookup]
    own: Mapping[str, Lookup]
    """Those of dnsproxy, asked directly."""

    @classmethod
    def of(cls, facts: Facts) -> _LookedUp:
        of_cluster = {one.hostname: one for one in facts.lookups if one.server == CLUSTER}
        return cls(of_cluster, {one.hostname: one for one in facts.own_lookups})

    def has(self, host: str) -> bool:
        return host in self.cluster and not self.cluster[host].fault

    def would_help(self, host: str, ways: Ways) -> bool:
        """Whether dnsproxy's answer is unknown, or another one at which pods were not seen to fail."""
        own = self.own.get(host)
        if own is None or own.fault or own.partial:
            return True
        if self.has(host) and _addresses(own) == _addresses(self.cluster[host]):
            return False
        failing = {normalize_address(one.address) for one in ways.failing}
        return not (own.addresses and _addresses(own) <= failing)


def _addresses(lookup: Lookup) -> frozenset[str]:
    return frozenset(map(normalize_address, lookup.addresses))


def _zones(facts: Facts) -> tuple[str, ...]:
    """The zones of our stanzas; empty without one, also with rewrite lines of ours."""
    stanzas = facts.dns.stanzas if facts.dns else ()
    return tuple(zone for stanza in stanzas if not stanza.fault for zone in stanza.zones)


def _line(line: AnsweringLine) -> TakenLine:
    excepted = tuple(TakenNames(one.kind, one.name) for one in line.excepted)
    return TakenLine(TakenNames(line.kind, line.name, line.gives), line.what, excepted, line.text)


def _effect(asked: bool, line: TakenLine, ways: Ways, facts: Facts) -> _Effect | None:
    """What the line does to one host of a group; None if it leads where Switchback does, as far as its text shows."""
    if asked and _fails(ways, facts):
        return _Effect.FAILS
    if asked and ways.is_served:
        return _Effect.SERVES
    if _leads_to_ours(line, ways, facts):
        return None
    return _Effect.UNKNOWN if facts.relay is None or facts.relay.found is None else _Effect.UNSEEN


def _fails(ways: Ways, facts: Facts) -> bool:
    """Whether pods fail by the answer: not by a fault of the relay, the controller or the application."""
    if not ways.answers:
        return not ways.group.is_wild
    if ways.is_served:
        return any(isinstance(one, Finding) for one in judge_server(ways, facts))
    if is_of_application(ways) or (ways.controllers and all(one.is_down for one in ways.controllers)):
        return False
    relay = relay_addresses(facts)
    return any(normalize_address(one.address) not in relay for one in ways.failing)


def _leads_to_ours(line: TakenLine, ways: Ways, facts: Facts) -> bool:
    """Whether a line names the relay, or a controller that takes bare connections as far as known."""
    gives, relay = normalize_address(line.names.gives), facts.relay
    takers = [one for one in ways.controllers if one.header_mode is not HeaderMode.REQUIRES]
    addresses = relay_addresses(facts).union(*(one.inner for one in takers))
    keys = {*((relay.key, *(one.key for one in relay.routes)) if relay else ()), *(one.key for one in takers)}
    name, _, rest = gives.partition(".")
    namespace, _, domain = rest.partition(".")
    return gives in addresses or (domain.startswith("svc.") and f"{namespace}/{name}" in keys)


def _before_stanza(effect: _Effect, taken: Mapping[str, TakenLine], facts: Facts) -> Finding:
    text = f"{_lead(taken)} before the stanza is asked{effect.value}"
    step = Remedy(
        "to let Switchback answer these hosts, end what wrote the line, and then remove it (deploy/migrating has the "
        "order for hairpin-proxy and ouroboros)",
        (*_edits(taken, facts.dns or ClusterDns()), "dnsproxy status"),
    )
    severity = _SEVERITY.get(effect, Severity.INFO)
    return Finding("answered-before", severity, text, "", _evidence(taken, facts), (step,), tuple(sorted(taken)))


def _without_stanza(taken: Mapping[str, TakenLine], facts: Facts) -> Finding:
    text = f"{_lead(taken)}: it decides which address pods get"
    step = Remedy("if it is stale, correct or remove it: Switchback's stanza would not be asked for these hosts either")
    return Finding("line-answers", Severity.INFO, text, "", _evidence(taken, facts), (step,), tuple(sorted(taken)))


def _lead(taken: Mapping[str, TakenLine]) -> str:
    lines = tuple(dict.fromkeys(line.what for line in taken.values()))
    hosts = listed(sorted(taken))
    return f"{lines[0]} answers {hosts}" if len(lines) == 1 else f"lines of the cluster's DNS answer {hosts}"


def _evidence(taken: Mapping[str, TakenLine], facts: Facts) -> tuple[str, ...]:
    lines = [
        f"{host}: {': '.join(filter(None, (line.what, line.text)))}" for host, line in sorted(taken.items(), key=_host)
    ]
    own = [one for one in facts.own_lookups if one.hostname in taken and not one.fault]
    lines += [f"dnsproxy answers {one.hostname} with {', '.join(one.addresses) or 'no address'}" for one in own]
    return tuple(lines)


def _host(taken: tuple[str, TakenLine]) -> str:
    return taken[0]


def _edits(taken: Mapping[str, TakenLine], dns: ClusterDns) -> Iterator[str]:
    for config_map in dns.decides:
        if any(f" ConfigMap {config_map}, line " in line.what for line in taken.values()):
            namespace, name = quoted(config_map)
            yield f"kubectl -n {namespace} edit configmap {name}"
