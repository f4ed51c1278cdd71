"""Short circuit, header and load balancer together: the findings about one controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Class, Facts, Service
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    BALANCER,
    DEPLOYED,
    HOSTNAME,
    KEY,
    OLD_IP,
    PROXY_MODE,
    REJECTS,
    REQUIRES,
    UNSEEN,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    diagnose,
    facts,
    ids,
    installed,
    lines,
    named,
    relay_probe,
    service,
)

HETZNER_ON = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
HETZNER_OFF = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "false"}
LIKELY = "short-circuit-likely"
DEAD = (Outcome.REFUSED,) * 3
SILENT = (Outcome.SILENT,) * 3
METALLB = {"metallb.universe.tf/address-pool": "public"}
DECLARED: dict[str, Any] = {
    "settings": {"use-proxy-protocol": "true"},
    "settings_from": "ConfigMap ingress-nginx/controller",
}


SERVED = (Outcome.ANSWERED,)


def seen_at(
    one: Service, controller: Iterable[Outcome], *balancer: Outcome, address: str = BALANCER, **fields: Any
) -> Facts:
    """A controller, and what its load balancer's address gives."""
    probes = (*controller_probes(controller), *balancer_probes(*balancer, address=address))
    return facts(one, probes=probes, **fields)


@pytest.mark.parametrize(
    ("seen", "wrong", "status"),
    [
        (facts(service(HETZNER_ON)), {"short-circuited"}, ExitStatus.NO),
        (seen_at(service(HETZNER_ON, points=PROXY_MODE), REQUIRES, *SERVED), set(), ExitStatus.DONE),
        (seen_at(service(HETZNER_ON, points=PROXY_MODE), REQUIRES, *REQUIRES), {"header-lost"}, ExitStatus.NO),
        (seen_at(service(HETZNER_ON, points=HOSTNAME), REQUIRES, *SERVED), set(), ExitStatus.DONE),
        (seen_at(service(HETZNER_OFF), REJECTS, *SERVED), set(), ExitStatus.DONE),
        (seen_at(service(HETZNER_ON), ACCEPTS, *SERVED), set(), ExitStatus.DONE),
        (seen_at(service(HETZNER_ON), REJECTS, *SERVED), {"header-unwanted"}, ExitStatus.NO),
        (seen_at(service(HETZNER_ON, points=PROXY_MODE), REJECTS, *SERVED), set(), ExitStatus.DONE),
        (
            seen_at(service(HETZNER_ON), REJECTS, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST, Outcome.BAD_REQUEST),
            {"header-unwanted", "balancer-unserved"},
            ExitStatus.NO,
        ),
        (facts(service(HETZNER_OFF)), {"header-missing", "short-circuited"}, ExitStatus.NO),
        (
            seen_at(service(HETZNER_OFF, points=HOSTNAME), REQUIRES, *REQUIRES),
            {"header-missing", "header-lost"},
            ExitStatus.NO,
        ),
        (seen_at(service(HETZNER_OFF, points=HOSTNAME), REQUIRES, *SERVED), set(), ExitStatus.DONE),
        (facts(service(METALLB)), {"short-circuited"}, ExitStatus.NO),
        (seen_at(service(HETZNER_ON), DEAD, Outcome.REFUSED), {"controller-dead"}, ExitStatus.NO),
        (seen_at(service(HETZNER_ON), SILENT, *SILENT), {"controller-silent"}, ExitStatus.NO),
        (facts(service(HETZNER_ON), **UNSEEN), {LIKELY}, ExitStatus.NO),
        (facts(service(), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(points=HOSTNAME), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(points=PROXY_MODE), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(HETZNER_ON, **DECLARED), **UNSEEN), {"short-circuited"}, ExitStatus.NO),
        (facts(service(HETZNER_OFF), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(METALLB), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(points=PROXY_MODE), components=(), **UNSEEN), set(), ExitStatus.UNKNOWN),
        (facts(service(points=()), **UNSEEN), {"no-road"}, ExitStatus.NO),
    ],
    ids=["the fault", "ipMode Proxy", "ipMode Proxy, and yet", "hostname", "no PROXY at all", "takes both",
         "sent and refused past the load balancer", "sent by settings, refused, and served",
         "sent and refused", "wanted, not sent",
         "wanted and not sent, a hostname", "a switch that says off and a header that comes", "MetalLB",
         "dead controller", "silent controller", "from outside, switched on", "from outside",
         "from outside, a hostname", "from outside, ipMode Proxy", "from outside, as its settings say",
         "from outside, switched off", "from outside, MetalLB", "unknown data plane", "no status"],
)  # fmt: skip
def test_a_state_has_its_findings_and_its_status(seen: Facts, wrong: set[str], status: int) -> None:
    diagnosis = judge(seen)
    assert bad(diagnosis) == wrong
    assert diagnosis.status == status


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        ("skipper", {"enable-proxy-protocol": "true", "proxy-allow-cidrs": "198.51.100.0/24"}),
        ("kubernetes-ingress", {"proxy-protocol": "198.51.100.0/24"}),
    ],
)
def test_a_refused_header_is_no_fault_if_the_load_balancer_may_be_trusted(
    program: str, settings: dict[str, str]
) -> None:
    trusting = service(HETZNER_ON, program=program, settings=settings, settings_from="workload edge/controller")
    diagnosis = judge(seen_at(trusting, REJECTS, *SERVED))
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.DONE


def test_an_answered_connection_overrides_what_was_derived() -> None:
    diagnosis = judge(seen_at(service(HETZNER_ON, **DECLARED), REQUIRES, *SERVED))
    assert "reached" in ids(diagnosis)
    assert diagnosis.status == ExitStatus.DONE


@pytest.mark.parametrize("outcome", [Outcome.CLOSED, Outcome.RESET, Outcome.SILENT, Outcome.BAD_REQUEST])
def test_a_connection_that_needs_the_header_is_evidence_of_the_short_circuit(outcome: Outcome) -> None:
    seen = seen_at(service(HETZNER_ON), REQUIRES, outcome, Outcome.ANSWERED, Outcome.ANSWERED)
    finding = named(judge(seen), "short-circuited")
    said = f"203.0.113.10:80 (HTTP): plain {outcome.value}, v1 answered, v2 answered"
    assert said in finding.evidence


@pytest.mark.parametrize("outcomes", [(Outcome.UNREACHABLE,), (Outcome.CLOSED,) * 3, (Outcome.SILENT,) * 3])
def test_a_load_balancer_that_fails_with_the_header_too_is_another_finding(outcomes: tuple[Outcome, ...]) -> None:
    for points in (PROXY_MODE, OLD_IP):
        diagnosis = judge(seen_at(service(HETZNER_ON, points=points), REQUIRES, *outcomes))
        assert bad(diagnosis) == {"balancer-unserved"}


def test_if_nothing_can_be_reached_this_machine_is_blocked() -> None:
    unreachable = (Outcome.UNREACHABLE,) * 3
    diagnosis = judge(seen_at(service(), unreachable, Outcome.UNREACHABLE))
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.UNKNOWN
    assert "the ports of the cluster" in {unseen.what for unseen in diagnosis.unseen}
    well = judge(installed(probes=(relay_probe(Outcome.UNREACHABLE),)))
    assert bad(well) == set()
    assert well.status == ExitStatus.UNKNOWN


def test_a_controller_that_accepts_both_needs_no_relay() -> None:
    finding = named(diagnose(probes=controller_probes(ACCEPTS)), "takes-both")
    assert lines(finding) == ["DNSPROXY_TARGET_FOR=nginx=service:ingress-nginx/ingress-nginx-controller"]


def test_one_load_balancer_address_of_three_that_fails_is_enough() -> None:
    answers = (BALANCER, "198.51.100.7", "2001:db8::1")
    probes = (
        *controller_probes(REQUIRES),
        *balancer_probes(Outcome.ANSWERED),
        *balancer_probes(Outcome.ANSWERED, address="198.51.100.7"),
        *balancer_probes(*REQUIRES, address="2001:db8::1"),
    )
    seen = facts(service(HETZNER_ON), probes=probes, lookups=(answering(*answers),))
    finding = named(judge(seen), "header-lost")
    assert "2001:db8::1" in finding.text
    assert "3 addresses" in finding.text
    assert BALANCER not in finding.text


PUBLIC = "198.51.100.7"
"""The public address of a router in front of bare metal."""


def bare_metal(controller: Iterable[Outcome], *public: Outcome, address: str = PUBLIC) -> Facts:
    one = service(points=(), type="NodePort", labels={"app.kubernetes.io/name": "ingress-nginx"})
    nginx = (Class("nginx", "k8s.io/ingress-nginx"),)
    return seen_at(one, controller, *public, address=address, classes=nginx, lookups=(answering(PUBLIC),))


@pytest.mark.parametrize(
    ("outcomes", "ident"),
    [
        ((Outcome.UNREACHABLE,), "no-loopback"),
        ((Outcome.REFUSED,), "no-loopback"),
        (REQUIRES, "header-lost"),
        ((Outcome.BAD_REQUEST, Outcome.ANSWERED, Outcome.CLOSED), "header-lost"),
        ((Outcome.CLOSED,) * 3, "answer-unserved"),
    ],
)
def test_bare_metal_without_a_load_balancer_is_judged_by_its_public_address(
    outcomes: tuple[Outcome, ...], ident: str
) -> None:
    seen = bare_metal(REQUIRES, *outcomes)
    assert bad(judge(seen)) == {ident}
    step = named(judge(seen), ident).steps[-1]
    assert list(step.lines) == DEPLOYED
    # operate leaves alone what is not short-circuited.
    assert "write a route Service for it" in step.text


def test_bare_metal_that_is_reached_is_healthy() -> None:
    assert judge(bare_metal(REQUIRES, Outcome.ANSWERED)).status == ExitStatus.DONE


@pytest.mark.parametrize("controller", [REJECTS, ACCEPTS], ids=["rejects it", "takes both"])
@pytest.mark.parametrize("outcomes", [(Outcome.UNREACHABLE,), (Outcome.CLOSED,) * 3], ids=["dead", "silent"])
def test_no_relay_is_recommended_where_the_controller_takes_bare_connections(
    controller: tuple[Outcome, ...], outcomes: tuple[Outcome, ...]
) -> None:
    for seen in (bare_metal(controller, *outcomes), seen_at(service(), controller, *outcomes)):
        (finding,) = (one for one in judge(seen).findings if one.severity is Severity.PROBLEM)
        assert f"DNSPROXY_TARGET_FOR=nginx=service:{KEY}" in lines(finding)
        assert not any("a relay that adds" in step.text for step in finding.steps)


@pytest.mark.parametrize("controller", [DEAD, SILENT], ids=["dead", "silent"])
def test_a_controller_that_serves_nobody_needs_no_switchback(controller: tuple[Outcome, ...]) -> None:
    for balancer in ((Outcome.REFUSED,), SILENT):
        diagnosis = judge(seen_at(service(HETZNER_ON), controller, *balancer))
        told = [line for one in diagnosis.findings for line in lines(one)]
        assert told
        assert not any("install" in line or "apply" in line for line in told)


def test_outside_the_cluster_the_lines_to_look_from_inside_are_given() -> None:
    diagnosis = diagnose(service(), hostname="app.example.org", **UNSEEN)
    (unseen,) = diagnosis.unseen
    told = [line for step in unseen.steps for line in step.lines]
    assert told[0] == "dnsproxy doctor app.example.org --save facts.json"
    assert told[1].endswith("-- dnsproxy doctor --from - --probe < facts.json")
    assert "--connect-to ::10.96.0.80: http://app.example.org/" in told[2]
    assert "--haproxy-protocol" in told[3]


def test_a_switch_that_is_missing_is_given_as_the_command_that_sets_it() -> None:
    finding = named(diagnose(service(HETZNER_OFF)), "header-missing")
    assert lines(finding)[0].endswith("load-balancer.hetzner.cloud/uses-proxyprotocol=true")
    scaleway = {"service.beta.kubernetes.io/scw-loadbalancer-use-hostname": "false"}
    assert lines(named(diagnose(service(scaleway)), "header-missing"))[0].endswith("proxy-protocol-v1='*'")


def test_an_annotation_with_other_settings_is_not_overwritten() -> None:
    upcloud = {"service.beta.kubernetes.io/upcloud-load-balancer-config": '{"name": "web"}'}
    assert named(diagnose(service(upcloud)), "header-missing").steps[0].lines == ()


def test_a_header_from_a_proxy_before_metallb_is_no_fault() -> None:
    assert named(diagnose(service(METALLB, points=HOSTNAME)), "header-from-outside").severity is Severity.INFO


def test_an_installation_turns_the_fault_into_an_ok_finding() -> None:
    diagnosis = judge(installed(service(HETZNER_ON)))
    assert bad(diagnosis) == set()
    assert named(diagnosis, "short-circuit-answered").severity is Severity.OK
    assert diagnosis.verdict == "this cluster: all is well"
    assert diagnosis.status == ExitStatus.DONE


@pytest.mark.parametrize(("controller", "ident"), [(DEAD, "controller-dead"), (SILENT, "controller-silent")])
def test_a_controller_that_is_down_is_no_fault_where_all_hosts_are_served(
    controller: tuple[Outcome, ...], ident: str
) -> None:
    diagnosis = judge(seen_at(service(HETZNER_ON), controller, *SERVED))
    assert named(diagnosis, ident).severity is Severity.INFO
    assert diagnosis.status == ExitStatus.DONE
    assert "short-circuit-harmless" not in ids(diagnosis)
