"""Why pods are not served at an address that the cluster's DNS answers, and what the doctor advises."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import BalancerAddress, Component, Host
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    BALANCER,
    CLOSED,
    CONTROLLER,
    HOST,
    HOSTNAME,
    IP,
    OTHER_BALANCER,
    PROXY_MODE,
    REFUSED,
    REJECTS,
    RELAY,
    REQUIRES,
    SERVED,
    SILENT,
    STRANGE,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    diagnose,
    facts,
    installed,
    led_to,
    named,
    other_service,
    probes_at,
    service,
)


@pytest.mark.parametrize(
    ("outcomes", "ident"),
    [
        (REFUSED, "answer-dead"),
        ((Outcome.UNREACHABLE,), "answer-dead"),
        ((Outcome.NO_ROUTE,), "no-route"),
        (CLOSED, "answer-unserved"),
        (SILENT, "answer-unserved"),
        ((Outcome.BAD_REQUEST,) * 3, "answer-unserved"),
        (REQUIRES, "header-lost"),
    ],
    ids=["refused", "no connection", "no route at all", "closed", "silent", "400", "needs the header"],
)
def test_a_healthy_load_balancer_does_not_excuse_an_answer_that_fails(
    outcomes: tuple[Outcome, ...], ident: str
) -> None:
    diagnosis = judge(led_to(STRANGE, outcomes))
    assert bad(diagnosis) == {ident}
    finding = named(diagnosis, ident)
    assert STRANGE in finding.text
    assert finding.hosts == (HOST,)
    assert diagnosis.status == ExitStatus.NO


def test_the_owner_of_a_dead_record_is_told_where_the_load_balancer_is() -> None:
    finding = named(judge(led_to(STRANGE, REFUSED)), "answer-dead")
    assert f"the load balancer is at {BALANCER}" in finding.steps[0].text


def test_one_of_several_answers_that_fails_is_named_and_the_others_are_not() -> None:
    probes = (*controller_probes(REJECTS), *balancer_probes(*SERVED), *probes_at(STRANGE, REFUSED))
    seen = facts(service(points=PROXY_MODE), probes=probes, lookups=(answering(BALANCER, STRANGE),))
    text = named(judge(seen), "answer-dead").text
    assert f"with {STRANGE}," in text
    assert "answers with 2 addresses" in text


def test_a_family_without_a_route_is_no_fault_beside_one_that_is_served() -> None:
    six = probes_at("2001:db8::9", [Outcome.NO_ROUTE])
    probes = (*controller_probes(REJECTS), *balancer_probes(*SERVED), *six)
    seen = facts(service(points=PROXY_MODE), probes=probes, lookups=(answering(BALANCER, "2001:db8::9"),))
    assert bad(judge(seen)) == set()
    reset = replace(seen, probes=(*probes[:-1], *probes_at("2001:db8::9", CLOSED)))
    assert bad(judge(reset)) == {"answer-unserved"}


def test_a_hostname_in_the_status_is_the_load_balancer_that_it_resolves_to() -> None:
    lookups = (answering(STRANGE), answering(STRANGE, hostname="lb.example.org"))
    for outcomes in (REFUSED, CLOSED):
        seen = led_to(STRANGE, outcomes, one=service(points=HOSTNAME))
        assert bad(judge(replace(seen, lookups=lookups))) == {"balancer-unserved"}


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ({"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}, True),
        ({"metallb.universe.tf/address-pool": "public"}, False),
    ],
    ids=["Hetzner", "MetalLB"],
)
def test_an_ignored_ip_mode_keeps_the_hostname_above_the_relay(annotations: dict[str, str], kept: bool) -> None:
    cilium = Component("cilium", "DaemonSet kube-system/cilium", "v1.18.0", {"kube-proxy-replacement": "true"})
    finding = named(diagnose(service(annotations, points=PROXY_MODE), components=(cilium,)), "ip-mode-ignored")
    texts = [step.text for step in finding.steps]
    assert texts[0] == "upgrade Cilium to 1.18.1 or newer"
    assert any("put a hostname instead of the ip" in text for text in texts) is kept
    assert "a relay that adds the header" in texts[-1]


def test_source_ranges_and_the_traffic_policy_are_evidence() -> None:
    one = service(points=PROXY_MODE, source_ranges=("203.0.113.0/24",), external_traffic_policy="Local")
    finding = named(judge(led_to(BALANCER, REFUSED, one=one, controller=REJECTS)), "balancer-unserved")
    evidence = " ".join(finding.evidence)
    assert "loadBalancerSourceRanges of Service ingress-nginx/ingress-nginx-controller: 203.0.113.0/24" in evidence
    assert "is Local" in evidence


def test_a_fault_of_the_relay_is_reported_with_the_relay() -> None:
    seen = installed(probes=(*controller_probes(REQUIRES), *probes_at(RELAY, [Outcome.REFUSED])))
    assert bad(judge(seen)) == {"relay-unreachable"}


def test_a_name_that_leads_straight_to_a_controller_with_the_header_is_a_fault() -> None:
    seen = installed(probes=controller_probes(REQUIRES), lookups=(answering(CONTROLLER),))
    assert bad(judge(seen)) == {"header-lost"}


METALLB = {"metallb.io/ip-allocated-from-pool": "web"}
HETZNER = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}


@pytest.mark.parametrize(
    ("annotations", "points", "outcomes", "ident"),
    [
        (METALLB, PROXY_MODE, REFUSED, "ip-mode-harms"),
        (METALLB, PROXY_MODE, SILENT, "ip-mode-harms"),
        (METALLB, IP, REFUSED, "balancer-unserved"),
        (HETZNER, PROXY_MODE, REFUSED, "balancer-unserved"),
        (METALLB, PROXY_MODE, REQUIRES, "header-lost"),
    ],
    ids=["refused", "silent", "VIP", "a balancer that opens connections", "the header is missing"],
)
def test_proxy_mode_of_a_balancer_that_passes_packets_on_is_the_cause_of_its_failure(
    annotations: dict[str, str], points: tuple[BalancerAddress, ...], outcomes: tuple[Outcome, ...], ident: str
) -> None:
    probes = (*controller_probes(REQUIRES), *balancer_probes(*outcomes))
    seen = facts(service(annotations, points=points), probes=probes, lookups=(answering(BALANCER),))
    assert bad(judge(seen)) == {ident}


def test_proxy_mode_that_serves_pods_is_no_fault_though_metallb_gave_the_address() -> None:
    probes = (*controller_probes(REQUIRES), *balancer_probes(*SERVED))
    assert (
        bad(judge(facts(service(METALLB, points=PROXY_MODE), probes=probes, lookups=(answering(BALANCER),)))) == set()
    )


def test_the_way_back_from_a_harmful_mode_takes_the_annotation_away_first() -> None:
    probes = (*controller_probes(REQUIRES), *balancer_probes(*REFUSED))
    seen = facts(service(METALLB, points=PROXY_MODE), probes=probes, lookups=(answering(BALANCER),))
    (step,) = named(judge(seen), "ip-mode-harms").steps
    away, patch = step.lines
    assert away.endswith("switchback.dev/ip-mode-")
    assert f'[{{"ip": "{BALANCER}", "ipMode": "VIP"}}]' in patch


def test_the_way_back_keeps_the_hostnames_of_the_status() -> None:
    points = (BalancerAddress(BALANCER, "a.example.org", "Proxy"), BalancerAddress(hostname="b.example.org"))
    probes = (*controller_probes(REQUIRES), *balancer_probes(*REFUSED))
    seen = facts(service(METALLB, points=points), probes=probes, lookups=(answering(BALANCER),))
    (step,) = named(judge(seen), "ip-mode-harms").steps
    kept = f'[{{"ip": "{BALANCER}", "hostname": "a.example.org", "ipMode": "VIP"}}, {{"hostname": "b.example.org"}}]'
    assert kept in step.lines[1]


def test_the_way_back_is_for_the_services_that_are_cut_off() -> None:
    both = service(METALLB, points=PROXY_MODE), other_service(annotations=METALLB)
    host = Host(HOST, "Ingress web/shop", "", (BALANCER, OTHER_BALANCER))
    probes = (*controller_probes(REQUIRES), *balancer_probes(*REFUSED))
    seen = facts(both[0], services=both, hosts=(host,), probes=probes, lookups=(answering(BALANCER),))
    (step,) = named(judge(seen), "ip-mode-harms").steps
    assert f"service {both[0].key.partition('/')[2]} " in step.lines[1]
