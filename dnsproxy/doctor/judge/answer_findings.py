"""The findings about answers: which server a name leads to, compared with what Switchback and public DNS should say.

The law: an answer is judged by its owner; whether it serves pods is a finding of way_findings. Tested in
tests/dnsproxy/doctor/judge/test_diagnose.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.dns.names import is_wildcard
from dnsproxy.doctor.facts.model import Facts, OwnService
from dnsproxy.doctor.judge.answering_lines import FindLine, find_lines, is_explained
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import class_of, target_line
from dnsproxy.doctor.judge.dns_findings import only_rewrites
from dnsproxy.doctor.judge.failing_ways import evidence_of
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.doctor.judge.host_groups import HostGroup
from dnsproxy.doctor.judge.installation import AUTO, is_automatic
from dnsproxy.doctor.judge.paths import normalize_address
from dnsproxy.doctor.judge.reach import FAILING, differ, statuses
from dnsproxy.doctor.judge.relay_findings import has_routes, routes_to
from dnsproxy.doctor.judge.remedies import STATUS, quoted
from dnsproxy.doctor.judge.ways import Ways

_SHOWN: Final = 5


def judge_answers(every: Sequence[Ways], facts: Facts) -> Iterator[Finding]:
    """The findings about the answers of all groups."""
    find = find_lines(facts)
    for ways in every:
        for controller in ways.controllers:
            yield from _judge_class(controller, ways, facts)
        yield from _judge_loaded(ways, facts, find)
        yield from _judge_public(ways, facts)


def _judge_class(controller: Controller, ways: Ways, facts: Facts) -> Iterator[Finding]:
    """Hosts that the cluster's DNS leads to the relay, whose controller the relay does not serve."""
    relay = facts.relay
    if relay is None:
        return
    own = frozenset(map(normalize_address, relay.addresses))
    led = [one for one in ways.answers if one.address in own]
    if not led:
        return
    addresses = [one.address for one in led]
    other = has_routes(relay) and not routes_to(relay, controller.path.service, addresses)
    here = controller.statuses(ways.group.sample)
    if controller.header_mode is HeaderMode.REJECTS and not relay.routes:
        yield _wrong_class(controller, ways.group, "their controller rejects the PROXY header")
    elif other and controller.header_mode is not HeaderMode.REQUIRES:
        yield _wrong_class(controller, ways.group, "the relay routes to another controller")
    # A route may name the same controller by another Service; another status shows that it is another one.
    elif other and any(differ(statuses(one.bare), here) for one in led):
        yield _other_relay(controller, ways, relay)


def _wrong_class(controller: Controller, group: HostGroup, why: str) -> Finding:
    name = class_of(group, controller)
    text = f"the cluster's DNS answers with the relay for hosts of class {name}, but {why}"
    evidence = (f"{controller.about}: the controller {controller.header_mode.value}",)
    step = Remedy("answer this class with its own controller", (target_line(name, controller.key),))
    return Finding("wrong-class", Severity.PROBLEM, text, controller.about, evidence, (step,), group.hostnames)


def _other_relay(controller: Controller, ways: Ways, relay: OwnService) -> Finding:
    """The relay serves the controller of another class, and this one requires the header too."""
    name = class_of(ways.group, controller)
    text = (
        f"the cluster's DNS answers with the relay for hosts of class {name}, but the relay routes to another "
        "controller, which answers otherwise than theirs"
    )
    step = Remedy("let a route Service for each class decide (deploy/README.md)", (f"DNSPROXY_TARGET={AUTO}",))
    if relay.routes:
        lines = (STATUS, f"kubectl -n {quoted(relay.key)[0]} get services -o yaml")
        step = Remedy("see which route Service answers for the class", lines)
    hosts = ways.group.hostnames
    return Finding("wrong-class", Severity.PROBLEM, text, controller.about, evidence_of(ways), (step,), hosts)


def _judge_loaded(ways: Ways, facts: Facts, find: FindLine) -> Iterator[Finding]:
    """A cluster DNS that asks dnsproxy, and still leads pods to an address that fails them."""
    loaded = bool(facts.loaded) and {asked.state for asked in facts.loaded} == {"yes"}
    astray = [one for one in ways.answers if one.reach in FAILING and one.address not in ways.ours]
    if not loaded or not astray or not ways.group.hosts:
        return
    hostnames = ways.group.hostnames
    evidence = (f"{ways.group.sample}: {', '.join(ways.group.answers)}",)
    automatic = is_automatic(facts.dnsproxy)
    if facts.dns is not None and only_rewrites(facts.dns.stanzas):
        text = "the cluster's DNS rewrites names to their Services, but not these hosts"
        step = Remedy("see which names are left out, and why", (STATUS if automatic else "dnsproxy status",))
        yield Finding("not-answered", Severity.PROBLEM, text, ways.about, evidence, (step,), hostnames)
        return
    if is_explained(ways, facts, find):
        return
    text = "the cluster's DNS asks dnsproxy, but answers with an address that is not dnsproxy's for these hosts"
    why = f"kubectl -n switchback exec deploy/dnsproxy -- dnsproxy explain {quote(hostnames[0])}"
    step = Remedy("see why", (why, STATUS) if automatic else (why,))
    yield Finding("not-answered", Severity.PROBLEM, text, ways.about, evidence, (step,), hostnames)


def _judge_public(ways: Ways, facts: Facts) -> Iterator[Finding]:
    """Public DNS compared with the status: another address belongs to a CDN, or the name to another owner."""
    group = ways.group
    hosts = {host.hostname for host in group.hosts} | ({facts.hostname} if facts.hostname else set())
    lookups = [one for one in facts.lookups if one.server == "public" and one.hostname in hosts and not one.fault]
    points = {entry for one in ways.controllers for entry in one.balancer}
    # For a wildcard, the doctor asked for a name of its own, which no client uses.
    named = (one for one in lookups if not is_wildcard(one.hostname))
    bare = tuple(sorted(one.hostname for one in named if not one.addresses and not one.aliases))
    elsewhere = [one for one in lookups if one.addresses and points.isdisjoint((*one.addresses, *one.aliases))]
    if bare:
        text = "public DNS has no record of these hosts: no client outside reaches them"
        yield Finding("no-public-record", Severity.INFO, text, ways.about, hosts=bare)
    # The addresses of a hostname in the status are not compared: they change.
    if elsewhere and any(point.ip for one in ways.controllers for point in one.path.service.points):
        text = "public DNS resolves these hosts to other addresses than the load balancer's: a CDN, or a foreign name"
        evidence = tuple(f"{one.hostname}: {', '.join(one.addresses)}" for one in elsewhere[:_SHOWN])
        found = tuple(sorted({one.hostname for one in elsewhere}))
        yield Finding("public-elsewhere", Severity.INFO, text, ways.about, evidence, hosts=found)
