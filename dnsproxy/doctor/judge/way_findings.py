"""The findings about what pods get, one group of hosts at a time.

The law: what was dialled decides. "Served" needs an answered connection to every address that the cluster's DNS
answers; without one it is unknown, never healthy. Tested in tests/dnsproxy/doctor/judge/test_way_findings.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.application_answers import is_of_application, judge_application
from dnsproxy.doctor.judge.cures import cures
from dnsproxy.doctor.judge.failing_ways import controller_evidence, judge_failing
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.judge.loopback import loopback
from dnsproxy.doctor.judge.refusals import could_not_list
from dnsproxy.doctor.judge.served_ways import judge_served
from dnsproxy.doctor.judge.unseen_ways import judge_unseen
from dnsproxy.doctor.judge.ways import Ways


def judge_ways(ways: Ways, facts: Facts) -> Iterator[Finding | Unseen]:
    """The findings about one group."""
    group = ways.group
    if not group.hosts and not could_not_list(facts):
        return
    if group.asked and not group.fault and not group.answers:
        yield _wild(ways) if group.is_wild else _no_record(ways, facts)
        return
    may_loop = any(ways.may_loop(one.address) for one in ways.counted)
    if may_loop and not ways.is_past and (ways.failing or ways.is_served):
        yield loopback(ways, facts, answered=False)
    if is_of_application(ways):
        yield judge_application(ways)
    elif ways.failing:
        yield from judge_failing(ways, facts)
    elif ways.is_served:
        yield from judge_served(ways, facts)
        yield from _partial(ways)
    else:
        yield from judge_unseen(ways, facts, assumed=seems_installed(facts))


def seems_installed(facts: Facts) -> bool:
    """Whether the stanza is written and our parts are ready, for a look from outside the cluster."""
    written = facts.dns is not None and any(not stanza.fault for stanza in facts.dns.stanzas)
    own = (facts.dnsproxy, facts.relay)
    return not facts.probed and written and all(part is not None and bool(part.ready) for part in own)


def _partial(ways: Ways) -> Iterator[Unseen]:
    """A record type without an answer: a pod's client waits for it, and may get an address that was not dialled."""
    group = ways.group
    if group.partial:
        what = f"the records of {group.sample} of every type"
        why = f"the cluster's DNS left some queries without an answer: {group.partial}"
        yield Unseen(what, why, (Remedy("ask again", (f"dnsproxy doctor {quote(group.sample)}",)),))


def _wild(ways: Ways) -> Unseen:
    """A wildcard without a record of its own: the names in use may have records."""
    what = f"whether pods are served that dial names under {ways.group.hostnames[0]}"
    why = f"the cluster's DNS has no address for {ways.group.sample}, and the names in use are not known"
    return Unseen(what, why, (Remedy("ask about a name in use", ("dnsproxy doctor HOST",)),))


def _no_record(ways: Ways, facts: Facts) -> Finding:
    group = ways.group
    evidence = tuple(line for one in ways.controllers for line in controller_evidence(one))
    text = "the cluster's DNS has no address for these hosts, so no pod reaches them"
    if group.public:
        text = f"{text}; public DNS answers {', '.join(group.public)}"
    step = Remedy("create the record in the DNS that the cluster asks")
    steps = (step, *cures(group, ways.controllers, facts)) if ways.controllers else (step,)
    return Finding("no-record", Severity.PROBLEM, text, ways.about, evidence, steps, group.hostnames)
