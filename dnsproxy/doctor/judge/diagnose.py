"""Judging: from facts to a diagnosis.

The law: a pure function, so that one file gives the same diagnosis on every machine; it never raises, whatever the
facts hold. Hosts with one cause are one finding. What a pod gets (a DNS answer, then a connection) decides; statuses
and settings explain it, and never show that a pod is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.judge.answer_findings import judge_answers
from dnsproxy.doctor.judge.answering_lines import judge_lines
from dnsproxy.doctor.judge.controller import Controller, make_controller
from dnsproxy.doctor.judge.controller_findings import judge_header
from dnsproxy.doctor.judge.dns_findings import judge_dns
from dnsproxy.doctor.judge.findings import Diagnosis, Finding, Remedy, Severity, Unseen, cut_texts, worst_first
from dnsproxy.doctor.judge.hint_findings import judge_hints
from dnsproxy.doctor.judge.host_groups import find_groups
from dnsproxy.doctor.judge.ip_mode_policy import judge_policy
from dnsproxy.doctor.judge.need import is_needed, judge_need
from dnsproxy.doctor.judge.path_report import report_path
from dnsproxy.doctor.judge.paths import Paths, find_paths, near_names, normalize_address, relay_addresses
from dnsproxy.doctor.judge.reach import Reach
from dnsproxy.doctor.judge.refusals import could_not_list, judge_refusals
from dnsproxy.doctor.judge.relay_findings import judge_relay
from dnsproxy.doctor.judge.served_ways import has_errors
from dnsproxy.doctor.judge.way_findings import judge_ways
from dnsproxy.doctor.judge.ways import Ways, make_all_ways

_SHOWN: Final = 5


def judge(facts: Facts, paths: Paths | None = None) -> Diagnosis:
    """The diagnosis for the facts; `paths` are those of find_paths, for a caller that has them already."""
    paths = find_paths(facts) if paths is None else paths
    controllers = [make_controller(path, facts) for path in paths.paths]
    every = make_all_ways(find_groups(facts, paths), controllers, facts)
    results = [
        *_judge_paths(facts, paths, every),
        # A line that takes a host is the cause of what its pods get.
        *judge_lines(every, facts),
        *(one for ways in every for one in judge_ways(ways, facts)),
        *(one for controller in controllers for one in _judge_header(controller, every)),
        *_judge_own(facts, controllers, every),
        *judge_answers(every, facts),
        *judge_policy(facts),
        *judge_hints(facts),
    ]
    found = [one for one in results if isinstance(one, Finding)]
    if not any(one.severity in (Severity.PROBLEM, Severity.WARNING) for one in found):
        found += judge_need(every, paths, facts)
    findings = worst_first(found)
    seen_missing = (*(one for one in results if isinstance(one, Unseen)), *judge_refusals(every, paths, facts))
    unseen = tuple(dict.fromkeys(seen_missing))
    return cut_texts(Diagnosis(findings, unseen, _verdict(facts, findings, unseen), report_path(facts, paths, every)))


def _judge_header(controller: Controller, every: Sequence[Ways]) -> Iterator[Finding]:
    own = [ways for ways in every if controller in ways.controllers]
    needed = not all(ways.is_served and not has_errors(ways) for ways in own)
    return judge_header(controller, served=_passes(own), needed=needed)


def _passes(every: Iterable[Ways]) -> bool:
    """Whether a bare connection was answered that did not go past the load balancer."""
    straight = (one for ways in every for one in (*ways.answers, *ways.others) if one.address not in ways.ours)
    return any(one.reach is Reach.SERVED for one in straight)


def _judge_paths(facts: Facts, paths: Paths, every: Sequence[Ways]) -> Iterator[Finding]:
    readable = not could_not_list(facts)
    if facts.hostname and not paths.paths and not paths.unmatched and readable:
        yield _unknown_host(facts)
    elif not facts.hosts and readable:
        yield Finding("no-hosts", Severity.INFO, f"no {_kinds(facts)} of this cluster has a hostname")
    if paths.unmatched and readable:
        yield _no_path(paths.unmatched, served=all(ways.is_served for ways in every if not ways.controllers))


def _kinds(facts: Facts) -> str:
    """What was read, as the subject of a sentence."""
    return f"Ingress, Gateway or object of {', '.join(facts.sources)}" if facts.sources else "Ingress or Gateway"


def _unknown_host(facts: Facts) -> Finding:
    near = near_names(facts)
    text = f"no {_kinds(facts)} of this cluster serves {facts.hostname}"
    rejected = tuple(one for one in facts.rejected if facts.hostname in one)
    meant = Remedy(f"was {' or '.join(near)} meant?", tuple(f"dnsproxy doctor {quote(name)}" for name in near))
    line = f"dnsproxy doctor {quote(facts.hostname)} --source traefik"
    other = Remedy("if an object of another kind has it, name its source", (line,))
    steps, hosts = (*((meant,) if near else ()), *(() if facts.sources else (other,))), (facts.hostname,)
    return Finding("host-unknown", Severity.PROBLEM, text, facts.hostname, rejected, steps, hosts)


def _no_path(hosts: Sequence[Host], *, served: bool) -> Finding:
    """Hosts without a Service; what pods get for them is a finding beside it."""
    hostnames = tuple(sorted({host.hostname for host in hosts}))
    origins = tuple(
        f"{host.origin}, class {host.ingress_class or 'none'}{_shown(host.status)}" for host in hosts[:_SHOWN]
    )
    if any(host.status for host in hosts):
        text = "the address in the status of their objects belongs to no Service of this cluster"
        return Finding("no-road", Severity.INFO, text, "", origins, hosts=hostnames)
    text = "their objects have no address in the status: no controller handles them"
    steps = (Remedy("see which controller should handle them", ("kubectl get ingressclasses,gatewayclasses",)),)
    severity = Severity.INFO if served else Severity.WARNING
    return Finding("no-road", severity, text, "", origins, steps, hostnames)


def _shown(status: Sequence[str]) -> str:
    return f", status {', '.join(status)}" if status else ""


def _judge_own(facts: Facts, controllers: Sequence[Controller], every: Sequence[Ways]) -> Iterator[Finding | Unseen]:
    used = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    yield from judge_dns(facts, needed=any(map(is_needed, every)))
    yield from judge_relay(facts, controllers, used=used, asked=_leads_to_relay(facts, every))


def _leads_to_relay(facts: Facts, every: Sequence[Ways]) -> bool:
    """Whether the cluster's DNS leads some host to the relay; assumed if it was asked about none."""
    relay = relay_addresses(facts)
    asked = [ways.group for ways in every if ways.group.asked]
    return not asked or any(relay.intersection(map(normalize_address, group.answers)) for group in asked)


def _verdict(facts: Facts, findings: Sequence[Finding], unseen: Sequence[Unseen]) -> str:
    subject = facts.hostname or "this cluster"
    bad = [one for one in findings if one.severity in (Severity.PROBLEM, Severity.WARNING)]
    if bad:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        return f"{subject}: {bad[0].text}{more}"
    if any(one.matters for one in unseen):
        return f"{subject}: not known: no fault was seen, and not everything could be looked at"
    named = {one.id: one for one in findings}
    for ident in ("no-longer-needed", "not-needed", "no-hosts"):
        if ident in named:
            return f"{subject}: {named[ident].text}"
    return f"{subject}: all is well"
