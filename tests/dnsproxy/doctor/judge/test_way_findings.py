"""One judgement for each group of hosts."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import Facts, Host
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    HOST,
    HOSTNAME,
    REJECTS,
    REQUIRES,
    SERVED,
    STRANGE,
    TARGET,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    diagnose,
    facts,
    ids,
    lines,
    named,
    probes_at,
    service,
)


def test_a_host_without_a_record_is_served_by_nobody() -> None:
    finding = named(judge(facts(lookups=(answering(),))), "no-record")
    assert finding.hosts == (HOST,)
    assert finding.steps[0].text.startswith("create the record")
    assert judge(facts(lookups=(answering(),))).status == ExitStatus.NO


@pytest.mark.parametrize(
    ("controller", "line"), [(REQUIRES, "kubectl apply -k deploy"), (REJECTS, TARGET)], ids=["requires", "rejects"]
)
def test_switchback_can_answer_a_host_without_a_record(controller: tuple[Outcome, ...], line: str) -> None:
    finding = named(judge(facts(lookups=(answering(),), probes=controller_probes(controller))), "no-record")
    assert line in lines(finding)


def test_a_record_that_public_dns_has_is_shown() -> None:
    finding = named(judge(facts(lookups=(answering(), answering(BALANCER, server="public")))), "no-record")
    assert f"public DNS answers {BALANCER}" in finding.text


def test_a_hostname_that_no_object_serves_is_one_finding() -> None:
    seen = facts(hosts=(), hostname=HOST, probes=balancer_probes(Outcome.CLOSED))
    assert bad(judge(seen)) == {"host-unknown"}


def several(*rows: tuple[str, str]) -> Facts:
    """Hosts with their answers: the load balancer serves, an address of nobody refuses."""
    hosts = tuple(Host(name, f"Ingress web/{name}", "nginx", (BALANCER,)) for name, _ in rows)
    probes = [*controller_probes(REJECTS)]
    for name, address in rows:
        outcome = Outcome.ANSWERED if address == BALANCER else Outcome.REFUSED
        probes += probes_at(address, [outcome], hostname=name)
    lookups = tuple(answering(address, hostname=name) for name, address in rows)
    return facts(service(), hosts=hosts, probes=tuple(probes), lookups=lookups)


def test_a_stale_record_of_one_host_is_a_finding_about_that_host_alone() -> None:
    diagnosis = judge(several(("a.example.org", BALANCER), ("b.example.org", STRANGE), ("c.example.org", BALANCER)))
    assert named(diagnosis, "answer-dead").hosts == ("b.example.org",)
    assert named(diagnosis, "short-circuit-harmless").hosts == ("a.example.org", "c.example.org")
    assert "not-needed" not in ids(diagnosis)


def test_hosts_with_one_fault_are_one_finding() -> None:
    diagnosis = judge(several(*((f"h{number}.example.org", STRANGE) for number in range(30))))
    assert len(named(diagnosis, "answer-dead").hosts) == 30


NLB = {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}


@pytest.mark.parametrize(
    ("answer", "found"), [(STRANGE, set()), (BALANCER, {"nlb-loopback"})], ids=["a CDN in front", "its own address"]
)
def test_the_loopback_of_an_nlb_does_not_concern_pods_that_are_led_elsewhere(answer: str, found: set[str]) -> None:
    lookups = (answering(answer), answering(BALANCER, hostname="lb.example.org"))
    probes = (*controller_probes(REJECTS), *probes_at(STRANGE, SERVED), *balancer_probes(*SERVED))
    assert bad(diagnose(service(NLB, points=HOSTNAME), provider="aws", lookups=lookups, probes=probes)) == found


def test_an_nlb_is_known_by_what_the_clusters_own_dns_answers_for_its_hostname() -> None:
    public = answering(STRANGE, hostname="lb.example.org", server="public")
    lookups = (answering(BALANCER), answering(BALANCER, hostname="lb.example.org"), public)
    probes = (*controller_probes(REJECTS), *balancer_probes(*SERVED), *probes_at(STRANGE, SERVED))
    seen = diagnose(service(NLB, points=HOSTNAME), provider="aws", lookups=lookups, probes=probes)
    assert bad(seen) == {"nlb-loopback"}


@pytest.mark.parametrize("own", ["127.0.0.1", "127.0.1.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
def test_an_address_of_the_pod_itself_serves_nobody_whatever_listens_beside_the_doctor(own: str) -> None:
    probes = (*controller_probes(REJECTS), *balancer_probes(*SERVED), *probes_at(own, SERVED))
    diagnosis = diagnose(lookups=(answering(own),), probes=probes)
    assert "each pod itself" in " ".join(named(diagnosis, "answer-dead").evidence)
    assert diagnosis.status == ExitStatus.NO
