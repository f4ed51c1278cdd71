"""Refusals: what could not be read or asked, each with its name and what to do.

The law: an unreadable list is never an absence. Without a list of hosts or Services, the diagnosis may lack hosts, so
that it is never healthy. Tested in tests/dnsproxy/doctor/judge/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Final

from dnsproxy.doctor.facts.model import Facts
from dnsproxy.doctor.judge.findings import Remedy, Unseen
from dnsproxy.doctor.judge.header_mode import usable_probes
from dnsproxy.doctor.judge.paths import Paths
from dnsproxy.doctor.judge.remedies import look_from_inside
from dnsproxy.doctor.judge.ways import Ways

HOST_LISTS: Final = frozenset(
    [
        "list services",
        "list ingresses",
        "list gateways",
        "list httproutes",
        "list grpcroutes",
        "list tlsroutes",
        "list listenersets",
        "list xlistenersets",
        "list namespaces",
    ]
)
"""Without one of these lists, hosts or their Services may be missing from the diagnosis."""
CLASS_LISTS: Final = frozenset(["list ingressclasses", "list gatewayclasses"])
"""Without one of these lists, a host that no status names has no controller."""
DIALLING: Final = "dial the ports"
LOOKING_UP: Final = "look up the names"
"""Parts of the look that may end before everything was tried; the collector takes their names from here."""


def could_not_list(facts: Facts) -> bool:
    """Whether hosts or Services may be missing, because a list could not be read."""
    return any(one.names_hosts or one.what in HOST_LISTS | CLASS_LISTS for one in facts.refusals)


def judge_refusals(every: Sequence[Ways], paths: Paths, facts: Facts) -> Iterator[Unseen]:
    """Everything that could not be seen, apart from single groups of hosts."""
    for fault in facts.dns.faults if facts.dns else ():
        # A failure of pods is a finding already; if they do not fail, their DNS server does not matter.
        yield Unseen("something about the cluster's DNS", fault, matters=False)
    if facts.probes and not usable_probes(facts.probes):
        why = "no connection from this machine succeeded: it is not a pod, or a network policy blocks it"
        yield Unseen("the ports of the cluster", why, (look_from_inside(facts),))
    if facts.probed and facts.hostname and not any(one.server == "public" for one in facts.lookups):
        step = Remedy("name a public DNS server", (f"dnsproxy doctor {quote(facts.hostname)} --public-dns 192.0.2.53",))
        yield Unseen("the answer of public DNS", "only the cluster's own DNS is known here", (step,), matters=False)
    late = sum(ways.group.late for ways in every)
    if late:
        why = "there are too many: each was judged like the other hosts of its Service"
        step = Remedy("ask about one of them", ("dnsproxy doctor HOST",))
        yield Unseen(f"what the cluster's DNS answers for {late} of the hostnames", why, (step,), matters=False)
    known = bool(every) and not paths.unmatched
    for refusal in facts.refusals:
        steps = (
            (Remedy("grant this right while the doctor runs: reading is enough"),) if "forbidden" in refusal.why else ()
        )
        matters = not known or refusal.names_hosts or refusal.what in (*HOST_LISTS, DIALLING, LOOKING_UP)
        yield Unseen(refusal.what, refusal.why, steps, matters=matters)
