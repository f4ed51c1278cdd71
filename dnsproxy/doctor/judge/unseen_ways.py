"""Unseen ways: nothing shows what pods get for a group: nothing was dialled, or the cluster's DNS did not answer.

The law: statuses and settings can show that pods fail, never that they are served. What is not known is named, with how
to find out. Tested in tests/dnsproxy/doctor/judge/test_unseen_ways.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.controller import Controller
from dnsproxy.doctor.judge.cures import cures, find_out, why_no_policy
from dnsproxy.doctor.judge.failing_ways import cause_of, controller_evidence, evidence_of
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity, Unseen
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.loopback import loopback
from dnsproxy.doctor.judge.reach import FAILING, Reach, overall_reach
from dnsproxy.doctor.judge.remedies import look_from_inside
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.doctor.judge.ways import Ways


def judge_unseen(ways: Ways, facts: Facts, *, assumed: bool) -> Iterator[Finding | Unseen]:
    """What follows for a group from statuses and settings; `assumed`: Switchback is installed and seems to work."""
    failing = tuple(one for one in ways.others if one.reach in FAILING)
    yield _not_seen(ways, facts)
    if assumed:
        return
    if failing and ways.controllers:
        yield _by_balancer(ways, facts)
        return
    if overall_reach(ways.others) is Reach.SERVED:
        return
    for controller in ways.controllers:
        yield from _by_settings(controller, ways, facts)


def _not_seen(ways: Ways, facts: Facts) -> Unseen:
    group = ways.group
    hosts = group.hostnames or (group.sample,)
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    what = f"whether pods are served that dial {hosts[0]}{more}"
    return Unseen(what, _why(ways, facts), _steps(ways, facts))


def _why(ways: Ways, facts: Facts) -> str:
    if not facts.probed:
        return "nothing was dialled from this machine"
    if ways.group.fault:
        return f"the cluster's DNS did not answer: {ways.group.fault}"
    if not ways.group.asked:
        return "the cluster's DNS was not asked"
    left = ", ".join(one.address for one in ways.answers)
    return f"no connection shows it: {left} could not be dialled from this machine"


def _steps(ways: Ways, facts: Facts) -> tuple[Remedy, ...]:
    by_hand = (find_out(ways.group, one) for one in ways.controllers[:1])
    return (look_from_inside(facts), *by_hand)


def _by_balancer(ways: Ways, facts: Facts) -> Finding:
    """The load balancer's address was dialled and fails, and whether the cluster's DNS answers it is unknown."""
    worst = next(one for one in ways.others if one.reach in FAILING)
    ident = cause_of(worst, ways, facts)
    text = f"pods that resolve these hosts to {worst.address} are not served: a connection {worst.reach.value}"
    short = ident in ("short-circuited", "ip-mode-ignored")
    controllers = ways.for_addresses([worst.address])
    steps = cures(ways.group, controllers, facts, short=short)
    known = ident if short or ident in ("header-lost", "ip-mode-harms") else "balancer-unserved"
    evidence = (*evidence_of(ways), *(why_no_policy(controllers, facts) if short else ()))
    return Finding(known, Severity.PROBLEM, text, ways.about, evidence, steps, ways.group.hostnames)


def _by_settings(controller: Controller, ways: Ways, facts: Facts) -> Iterator[Finding]:
    past = ", ".join(controller.short.addresses)
    if controller.loops_back:
        yield loopback(ways, facts, answered=False)
    elif controller.fails_by_settings is Answer.YES:
        ident = "ip-mode-ignored" if controller.short.addresses == controller.short.ignored else "short-circuited"
        text = (
            f"pods that dial the load balancer {past} are short-circuited past it, so the controller never gets the "
            "PROXY header that it requires"
        )
        yield _finding(ident, Severity.PROBLEM, text, controller, ways, facts)
    elif controller.short.state is Answer.YES and not controller.takes_bare:
        if controller.sends in (Sends.YES, Sends.SOME):
            text = (
                f"pods are short-circuited past the load balancer {past}, which {controller.sends.value}: "
                "a controller that requires it refuses them"
            )
            yield _finding("short-circuit-likely", Severity.WARNING, text, controller, ways, facts)
    elif controller.short.state is Answer.NO and not controller.short.empty:
        text = "statuses and settings show nothing that short-circuits pods past the load balancer"
        evidence = tuple(controller_evidence(controller))
        yield Finding("no-short-circuit", Severity.INFO, text, controller.about, evidence, (), ways.group.hostnames)


def _finding(ident: str, severity: Severity, text: str, controller: Controller, ways: Ways, facts: Facts) -> Finding:
    steps = cures(ways.group, (controller,), facts, short=True)
    evidence = (*controller_evidence(controller), *why_no_policy((controller,), facts))
    return Finding(ident, severity, text, controller.about, evidence, steps, ways.group.hostnames)
