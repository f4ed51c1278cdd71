"""Short circuit, header and load balancer together: the findings about one controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Class, Facts
from dnsproxy.doctor.facts.probes import Outcome
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    HOSTNAME,
    PROXY_MODE,
    REJECTS,
    REQUIRES,
    bad,
    balancer_probe,
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
METALLB = {"metallb.universe.tf/address-pool": "public"}
DECLARED: dict[str, Any] = {
    "settings": {"use-proxy-protocol": "true"},
    "settings_from": "ConfigMap ingress-nginx/controller",
}


@pytest.mark.parametrize(
    ("seen", "wrong", "status"),
    [
        (facts(service(HETZNER_ON)), {"short-circuited"}, ExitStatus.NO),
        (facts(service(HETZNER_ON, points=PROXY_MODE)), set(), ExitStatus.DONE),
        (facts(service(HETZNER_ON, points=HOSTNAME)), set(), ExitStatus.DONE),
        (facts(service(HETZNER_OFF), probes=controller_probes(REJECTS)), set(), ExitStatus.DONE),
        (facts(service(HETZNER_ON), probes=controller_probes(ACCEPTS)), set(), ExitStatus.DONE),
        (facts(service(HETZNER_ON), probes=controller_probes(REJECTS)), {"header-unwanted"}, ExitStatus.NO),
        (facts(service(HETZNER_OFF)), {"header-missing", "short-circuited"}, ExitStatus.NO),
        (facts(service(HETZNER_OFF, points=HOSTNAME)), {"header-missing"}, ExitStatus.NO),
        (facts(service(METALLB)), {"short-circuited"}, ExitStatus.NO),
        (facts(service(HETZNER_ON), probes=controller_probes(DEAD)), {"controller-dead", LIKELY}, ExitStatus.NO),
        (facts(service(HETZNER_ON), probes=(), probed=False), {LIKELY}, ExitStatus.NO),
        (facts(service(), probes=(), probed=False), set(), ExitStatus.UNKNOWN),
        (facts(service(points=HOSTNAME), probes=(), probed=False), set(), ExitStatus.DONE),
        (facts(service(points=PROXY_MODE), probes=(), probed=False), set(), ExitStatus.DONE),
        (facts(service(HETZNER_ON, **DECLARED), probes=(), probed=False), {"short-circuited"}, ExitStatus.NO),
        (facts(service(HETZNER_OFF), probes=(), probed=False), set(), ExitStatus.DONE),
        (facts(service(METALLB), probes=(), probed=False), set(), ExitStatus.UNKNOWN),
        (facts(service(points=PROXY_MODE), components=(), probes=(), probed=False), set(), ExitStatus.UNKNOWN),
        (facts(service(points=()), probes=(), probed=False), {"no-road"}, ExitStatus.NO),
    ],
    ids=["the fault", "ipMode Proxy", "hostname", "no PROXY at all", "takes both", "sent and refused",
         "wanted, not sent", "wanted and not sent, a hostname", "MetalLB", "dead controller",
         "from outside, switched on", "from outside", "from outside, a hostname", "from outside, ipMode Proxy",
         "from outside, as its settings say", "from outside, switched off", "from outside, MetalLB",
         "unknown data plane", "no status"],
)  # fmt: skip
def test_a_state_has_its_findings_and_its_status(seen: Facts, wrong: set[str], status: int) -> None:
    diagnosis = judge(seen)
    assert bad(diagnosis) == wrong
    assert diagnosis.status == status


def test_an_answered_connection_overrides_what_was_derived() -> None:
    probes = (*controller_probes(REQUIRES), balancer_probe(Outcome.ANSWERED))
    diagnosis = diagnose(service(HETZNER_ON), probes=probes)
    assert "reached" in ids(diagnosis)
    assert diagnosis.status == ExitStatus.DONE


@pytest.mark.parametrize("outcome", [Outcome.CLOSED, Outcome.RESET, Outcome.SILENT, Outcome.BAD_REQUEST])
def test_a_failed_connection_is_evidence_of_the_short_circuit(outcome: Outcome) -> None:
    probes = (*controller_probes(REQUIRES), balancer_probe(outcome))
    finding = named(diagnose(service(HETZNER_ON), probes=probes), "short-circuited")
    assert f"203.0.113.10:80 (HTTP): plain {outcome.value}" in finding.evidence


def test_a_load_balancer_that_fails_without_a_short_circuit_is_another_finding() -> None:
    probes = (*controller_probes(REQUIRES), balancer_probe(Outcome.UNREACHABLE))
    diagnosis = diagnose(service(HETZNER_ON, points=PROXY_MODE), probes=probes)
    assert bad(diagnosis) == {"balancer-unserved"}


def test_if_nothing_can_be_reached_this_machine_is_blocked() -> None:
    unreachable = (Outcome.UNREACHABLE,) * 3
    probes = (*controller_probes(unreachable), balancer_probe(Outcome.UNREACHABLE))
    diagnosis = diagnose(service(), probes=probes)
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.UNKNOWN
    assert "the ports of the cluster" in {unseen.what for unseen in diagnosis.unseen}
    well = judge(installed(probes=(relay_probe(Outcome.UNREACHABLE),)))
    assert bad(well) == set()


def test_a_controller_that_accepts_both_needs_no_relay() -> None:
    finding = named(diagnose(probes=controller_probes(ACCEPTS)), "takes-both")
    assert lines(finding) == ["DNSPROXY_TARGET_FOR=nginx=service:ingress-nginx/ingress-nginx-controller"]


@pytest.mark.parametrize(
    ("version", "overlay"),
    [("v1.33.5+k3s1", "k3s"), ("v1.33.5+rke2r1", "rke2"), ("v1.33.5-eks-a1b2", "eks"), ("v1.33.5-gke.1", "gke"),
     ("v1.33.5", "hetzner")],
)  # fmt: skip
def test_the_overlay_fits_the_distribution_before_the_provider(version: str, overlay: str) -> None:
    finding = named(diagnose(service(HETZNER_ON), server_version=version), "short-circuited")
    assert f"kubectl apply -k deploy/overlays/{overlay}" in lines(finding)
    assert (Path("deploy/overlays") / overlay).is_dir()


def test_one_load_balancer_address_of_two_that_fails_is_enough() -> None:
    probes = (
        *controller_probes(REQUIRES),
        balancer_probe(Outcome.ANSWERED),
        balancer_probe(Outcome.CLOSED, address="::1"),
    )
    assert bad(diagnose(service(HETZNER_ON), probes=probes)) == {"short-circuited"}


@pytest.mark.parametrize(
    ("outcome", "ident"),
    [
        (Outcome.UNREACHABLE, "no-loopback"),
        (Outcome.REFUSED, "no-loopback"),
        (Outcome.CLOSED, "header-lost"),
        (Outcome.BAD_REQUEST, "header-lost"),
    ],
)
def test_bare_metal_without_a_load_balancer_is_judged_by_its_public_address(outcome: Outcome, ident: str) -> None:
    base = facts(service(points=(), type="NodePort", labels={"app.kubernetes.io/name": "ingress-nginx"}))
    seen = _with_class(base, (*controller_probes(REQUIRES), balancer_probe(outcome)))
    assert bad(judge(seen)) == {ident}
    assert lines(named(judge(seen), ident))[-1] == "dnsproxy install"


def _with_class(base: Facts, probes: object) -> Facts:
    return replace(base, classes=(Class("nginx", "k8s.io/ingress-nginx"),), probes=probes)


def test_bare_metal_that_is_reached_is_healthy() -> None:
    base = facts(service(points=(), type="NodePort", labels={"app.kubernetes.io/name": "ingress-nginx"}))
    seen = _with_class(base, (*controller_probes(REQUIRES), balancer_probe(Outcome.ANSWERED)))
    assert judge(seen).status == ExitStatus.DONE


def test_outside_the_cluster_the_lines_to_look_from_inside_are_given() -> None:
    diagnosis = diagnose(service(), probes=(), probed=False, hostname="app.example.org")
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
