"""What nothing shows is not known: never healthy, and named with how to find out."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.facts.probes import Lookup, Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Unseen
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    BALANCER,
    HOST,
    HOSTNAME,
    OLD_IP,
    PROXY_MODE,
    REJECTS,
    REQUIRES,
    UNSEEN,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    facts,
    ids,
    service,
)

SERVFAIL = (Lookup(HOST, "cluster", "10.96.0.10:53", fault="SERVFAIL"),)
NOT_SERVED = f"whether pods are served that dial {HOST}"


def unseen_of(seen: Facts, what: str) -> Unseen:
    (one,) = (one for one in judge(seen).unseen if one.what == what)
    return one


@pytest.mark.parametrize("points", [OLD_IP, PROXY_MODE, HOSTNAME], ids=["short-circuited", "ipMode Proxy", "hostname"])
@pytest.mark.parametrize("fields", [UNSEEN, {"probes": ()}, {"lookups": ()}], ids=["outside", "no probe", "no look-up"])
def test_without_an_answer_and_a_connection_nothing_is_healthy(points: Any, fields: dict[str, Any]) -> None:
    healthy = (*controller_probes(ACCEPTS), *balancer_probes(Outcome.ANSWERED))
    assert judge(facts(service(points=points), probes=healthy)).status == ExitStatus.DONE
    diagnosis = judge(facts(service(points=points), **{"probes": healthy, **fields}))
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.UNKNOWN
    assert not ids(diagnosis) & {"reached", "short-circuit-harmless", "not-needed", "no-longer-needed"}
    assert "not known" in diagnosis.verdict


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (facts(**UNSEEN), "nothing was dialled from this machine"),
        (facts(lookups=SERVFAIL, probes=controller_probes(REJECTS)), "the cluster's DNS did not answer: SERVFAIL"),
        (facts(lookups=(), probes=controller_probes(REJECTS)), "the cluster's DNS was not asked"),
        (facts(probes=controller_probes(REJECTS)), f"{BALANCER} could not be dialled from this machine"),
    ],
    ids=["outside", "a fault of DNS", "no DNS", "not dialled"],
)
def test_the_reason_and_the_way_to_find_out_are_named(seen: Facts, why: str) -> None:
    one = unseen_of(seen, NOT_SERVED)
    assert why in one.why
    told = [line for step in one.steps for line in step.lines]
    assert any("--from - --probe" in line for line in told)
    assert one.matters


@pytest.mark.parametrize(
    ("outcomes", "ident"),
    [(REQUIRES, "short-circuited"), ((Outcome.REFUSED,), "balancer-unserved"), ((Outcome.CLOSED,) * 3,
      "balancer-unserved")],
)  # fmt: skip
def test_a_load_balancer_that_fails_is_a_fault_even_if_dns_did_not_answer(
    outcomes: tuple[Outcome, ...], ident: str
) -> None:
    seen = facts(lookups=SERVFAIL, probes=(*controller_probes(REQUIRES), *balancer_probes(*outcomes)))
    diagnosis = judge(seen)
    assert bad(diagnosis) == {ident}
    assert NOT_SERVED in {one.what for one in diagnosis.unseen}


def test_a_load_balancer_that_serves_shows_nothing_if_dns_did_not_answer() -> None:
    seen = facts(lookups=SERVFAIL, probes=(*controller_probes(REQUIRES), *balancer_probes(Outcome.ANSWERED)))
    assert judge(seen).status == ExitStatus.UNKNOWN
    assert "reached" not in ids(judge(seen))


def test_a_record_type_without_an_answer_is_not_known() -> None:
    half = Lookup(HOST, "cluster", "10.96.0.10:53", (BALANCER,), partial="AAAA: no answer")
    seen = facts(service(points=PROXY_MODE), lookups=(half,), probes=balancer_probes(Outcome.ANSWERED))
    assert "AAAA: no answer" in unseen_of(seen, f"the records of {HOST} of every type").why
    assert judge(seen).status == ExitStatus.UNKNOWN


def test_a_wildcard_without_a_record_is_not_known() -> None:
    wild = Host("*.example.org", "Ingress web/wild", "nginx", (BALANCER,))
    seen = facts(hosts=(wild,), lookups=(answering(hostname="*.example.org"),))
    diagnosis = judge(seen)
    assert "whether pods are served that dial names under *.example.org" in {one.what for one in diagnosis.unseen}
    assert diagnosis.status == ExitStatus.UNKNOWN


def test_hosts_that_were_not_looked_up_are_counted_and_keep_the_need_open() -> None:
    hosts = tuple(Host(f"h{number}.example.org", "Ingress a/b", "nginx", (BALANCER,)) for number in range(5))
    probes = balancer_probes(Outcome.ANSWERED)
    seen = facts(hosts=hosts, probes=probes, lookups=(answering(BALANCER, hostname="h0.example.org"),))
    assert unseen_of(seen, "what the cluster's DNS answers for 4 of the hostnames").matters is False
    assert "not-needed" not in ids(judge(seen))
    assert judge(seen).status == ExitStatus.DONE
