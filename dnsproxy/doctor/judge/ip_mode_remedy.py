"""The remedy that needs no DNS and no relay: `ipMode: Proxy`, written by our admission policy.

The law: it is offered only where it is known to cut nobody off; a doubt about its use comes with the check that settles
it, and otherwise one line says why it is not offered. Tested in tests/dnsproxy/doctor/judge/test_ip_mode_remedy.py.
"""

from __future__ import annotations

from shlex import quote

from dnsproxy.doctor.facts.model import Facts, Service
from dnsproxy.doctor.judge.findings import Remedy
from dnsproxy.doctor.judge.ip_mode_judgement import IpModeJudgement, judge_ip_mode, side_effects
from dnsproxy.doctor.judge.mutating_admission import ON_SINCE
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.short_circuit import Answer, DataPlane, parse_version


def with_side_effects(text: str, service: Service) -> str:
    """The text of a remedy by ipMode, whoever writes it, with the side effects."""
    return f"{text}. Side effects: {'; '.join(side_effects((service,)))}"


def has_policies(facts: Facts) -> bool:
    """Whether the API server can have the policy: as it says, else by its version."""
    if facts.ip_mode_policy is not None:
        return bool(facts.ip_mode_policy.version)
    server = parse_version(facts.server_version)
    return server is not None and server >= ON_SINCE


def judge_with(facts: Facts, service: Service, provider: Provider, plane: DataPlane) -> IpModeJudgement:
    """The judgement about a Service in the cluster of these facts."""
    version = facts.server_version
    return judge_ip_mode(service, provider, plane, node_addresses=facts.node_addresses, server_version=version)


def write_line(service: Service, facts: Facts) -> str:
    """The command that gives a Service `ipMode: Proxy`."""
    if has_policies(facts):
        return f"dnsproxy ip-mode --apply --service {quote(service.key)} --rewrite"
    return f"dnsproxy ip-mode --watch --service {quote(service.key)}"


def why_not(judgement: IpModeJudgement) -> str:
    """Why it is not offered; empty if it is, or if it is there."""
    if judgement.already:
        return ""
    if judgement.harms is Answer.YES:
        return judgement.why
    if judgement.obstacles:
        return "; ".join(judgement.obstacles)
    if judgement.harms is Answer.UNKNOWN:
        return f"{judgement.why}; `dnsproxy ip-mode --check` says how to see it"
    return ""


def make_remedy(service: Service, judgement: IpModeJudgement, facts: Facts, hostname: str) -> Remedy | None:
    """The remedy for a Service; None if it is not offered."""
    if judgement.already or why_not(judgement):
        return None
    if has_policies(facts):
        text = "let an admission policy write `ipMode: Proxy` whenever the provider writes the status: no DNS, no relay"
    else:
        text = (
            "let `dnsproxy ip-mode --watch` in a Deployment write `ipMode: Proxy` after the provider: no DNS, no "
            "relay; the API server has no MutatingAdmissionPolicy (Kubernetes 1.36 has)"
        )
    doubts = "; ".join(one.what for one in judgement.open)
    before = (f"dnsproxy ip-mode --check {quote(hostname)}",) if doubts else ()
    return Remedy(f"{text}; first check {doubts}" if doubts else text, (*before, write_line(service, facts)))
