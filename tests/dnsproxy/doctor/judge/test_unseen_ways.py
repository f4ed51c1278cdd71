"""What nothing shows is not known: never healthy, and named with how to find out."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Facts, Host, ReadFailure
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


FORBIDDEN = "forbidden: 403: not allowed"


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("list services", ExitStatus.UNKNOWN),
        ("list ingresses", ExitStatus.UNKNOWN),
        ("list ingressclasses", ExitStatus.UNKNOWN),
        ("list gateways", ExitStatus.UNKNOWN),
        ("list gatewayclasses", ExitStatus.UNKNOWN),
        ("list httproutes", ExitStatus.UNKNOWN),
        ("dial the ports", ExitStatus.UNKNOWN),
        ("look up the names", ExitStatus.UNKNOWN),
        ("list nodes", ExitStatus.DONE),
    ],
)
def test_what_could_not_be_read_is_named_and_never_an_absence(what: str, status: int) -> None:
    refusals = (ReadFailure(what, FORBIDDEN),)
    served = facts(service(points=PROXY_MODE), probes=balancer_probes(Outcome.ANSWERED), refusals=refusals)
    diagnosis = judge(served)
    assert diagnosis.status == status
    assert what in {one.what for one in diagnosis.unseen}
    assert "not-needed" not in ids(diagnosis)


@pytest.mark.parametrize("what", ["list services", "list ingresses"])
@pytest.mark.parametrize("hostname", [HOST, ""], ids=["one host", "all hosts"])
def test_an_unreadable_list_gives_no_finding_of_absence(what: str, hostname: str) -> None:
    hosts = facts().hosts if what == "list services" else ()
    seen = facts(hosts=hosts, hostname=hostname, refusals=(ReadFailure(what, FORBIDDEN),), probes=(), lookups=())
    seen = replace(seen, services=() if what == "list services" else seen.services)
    diagnosis = judge(seen)
    assert not ids(diagnosis) & {"host-unknown", "no-hosts", "no-road"}
    assert diagnosis.status == ExitStatus.UNKNOWN
