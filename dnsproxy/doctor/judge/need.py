"""The need for Switchback: whether pods are served without it.

The law: only a connection that was answered without Switchback shows that it is not needed, and only for all hosts
together; one unknown group keeps the question open. Tested in tests/dnsproxy/doctor/judge/test_need.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.findings import Finding, Remedy, Severity
from dnsproxy.doctor.judge.ip_mode_policy import NAME, selected
from dnsproxy.doctor.judge.paths import Paths
from dnsproxy.doctor.judge.reach import Reach, overall_reach
from dnsproxy.doctor.judge.ways import Ways

_END_KEEPERS: Final = "kubectl -n switchback delete deployment operate dnsproxy-install --ignore-not-found"
"""Each of them would restore the stanza; the second is that of earlier versions."""
_REMOVE: Final = "deploy/remove.sh my-cluster"


def is_needed(ways: Ways) -> bool:
    """Whether pods fail without Switchback, or nothing shows that they do not."""
    return not works_without(ways) and any(not one.is_down for one in ways.controllers)


def works_without(ways: Ways) -> bool:
    """Whether pods were seen to be served at the addresses that they get without Switchback."""
    return overall_reach(ways.without) is Reach.SERVED and not any(ways.may_loop(one.address) for one in ways.without)


def judge_need(every: Sequence[Ways], paths: Paths, facts: Facts) -> Iterator[Finding]:
    """Whether Switchback is needed, if everything is known."""
    written = facts.dns is not None and bool(facts.dns.stanzas)
    known = bool(every) and not paths.unmatched and not facts.refusals and not facts.hostname
    known = known and not any(ways.group.late or ways.refused_handshakes for ways in every)
    if not known or not all(map(works_without, every)):
        return
    if written:
        text = "Switchback is installed, but no host of this cluster needs it any more"
        yield Finding("no-longer-needed", Severity.INFO, text, "Switchback", _kept(facts), (_uninstall(facts),))
    elif all(ways.is_served for ways in every):
        text = "no host of this cluster needs Switchback"
        yield Finding("not-needed", Severity.OK, text, "Switchback", _kept(facts))


def _uninstall(facts: Facts) -> Remedy:
    """How to; the namespace may have the Deployment of `ip-mode --watch`, without which pods are short-circuited."""
    if selected(facts):
        text = (
            f"uninstall the stanza, dnsproxy and the relay, but keep the policy {NAME} and `dnsproxy ip-mode --watch`"
        )
        return Remedy(text, (_END_KEEPERS, "dnsproxy uninstall"))
    return Remedy("uninstall it: operate ends, the stanza goes, then all else (deploy/README.md)", (_REMOVE,))


def _kept(facts: Facts) -> tuple[str, ...]:
    keys = ", ".join(service.key for service in selected(facts))
    return (f"pods reach the load balancer because ipMode is Proxy by Switchback: {keys}; keep it",) if keys else ()
