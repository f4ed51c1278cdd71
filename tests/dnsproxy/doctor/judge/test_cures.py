"""What the doctor advises, by what the controller was seen to take."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Host
from dnsproxy.doctor.facts.probes import Outcome, Probe
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import (
    ACCEPTS,
    BALANCER,
    CONTROLLER,
    DEPLOYED,
    HOST,
    HOSTNAME,
    OTHER_BALANCER,
    OTHER_CONTROLLER,
    OTHER_HOST,
    OTHER_KEY,
    PROXY_MODE,
    REFUSED,
    REJECTS,
    REQUIRES,
    SERVED,
    SILENT,
    STRANGE,
    TARGET,
    answering,
    bad,
    balancer_probes,
    controller_probes,
    diagnose,
    facts,
    led_to,
    lines,
    named,
    other_service,
    probes_at,
    service,
)


@pytest.mark.parametrize("controller", [REJECTS, ACCEPTS], ids=["rejects", "takes both"])
@pytest.mark.parametrize("outcomes", [REFUSED, SILENT], ids=["dead", "silent"])
def test_the_names_are_led_to_a_controller_that_takes_bare_connections(
    controller: tuple[Outcome, ...], outcomes: tuple[Outcome, ...]
) -> None:
    for seen in (led_to(STRANGE, outcomes, controller=controller), led_to(BALANCER, outcomes, controller=controller)):
        (finding,) = (one for one in judge(seen).findings if one.severity is Severity.PROBLEM)
        told = lines(finding)
        assert told.index(TARGET) < told.index("kubectl apply -k deploy")
        assert not any("a relay that adds" in step.text for step in finding.steps)


def test_the_setting_comes_before_the_deployment_which_would_leave_the_names_alone() -> None:
    told = lines(named(judge(led_to(STRANGE, REFUSED, controller=REJECTS)), "answer-dead"))
    assert told == [TARGET, *DEPLOYED]


def two_ports(address: str, http: Any, https: Any) -> tuple[Probe, ...]:
    return (*probes_at(address, http), *probes_at(address, https, port=443, tls=True))


def test_a_dead_port_of_the_controller_is_not_cured_by_its_living_one() -> None:
    probes = (*two_ports(CONTROLLER, REJECTS, (Outcome.REFUSED,) * 3), *two_ports(BALANCER, SERVED, REFUSED))
    seen = facts(service(points=PROXY_MODE), probes=probes)
    seen = replace(seen, hosts=tuple(replace(one, tls=True) for one in seen.hosts))
    (finding,) = (one for one in judge(seen).findings if one.severity is Severity.PROBLEM)
    assert not any("install" in line or "DNSPROXY" in line for line in lines(finding))
    assert "get endpointslices,pods" in " ".join(lines(finding))


def test_a_port_that_rejects_the_header_needs_no_setting() -> None:
    probes = (*two_ports(CONTROLLER, REJECTS, REQUIRES), *two_ports(BALANCER, SERVED, REQUIRES))
    assert lines(named(diagnose(service(), probes=probes), "short-circuited"))[-2:] == DEPLOYED


@pytest.mark.parametrize("hosts", [slice(None), slice(None, None, -1)], ids=["its class last", "its class first"])
def test_the_controller_of_the_failing_address_is_cured_and_not_its_neighbour(hosts: slice) -> None:
    one = service(key="aaa/controller")
    both = (Host(HOST, "Ingress web/a", "nginx", (BALANCER,)), Host(HOST, "Ingress web/b", "other", (OTHER_BALANCER,)))
    short = (*probes_at(OTHER_CONTROLLER, REQUIRES), *probes_at(OTHER_BALANCER, REQUIRES))
    probes = (*controller_probes(REJECTS), *balancer_probes(*SERVED), *short)
    seen = facts(one, services=(one, other_service()), hosts=both[hosts], probes=probes)
    told = lines(named(judge(replace(seen, lookups=(answering(OTHER_BALANCER),))), "short-circuited"))
    assert not any("aaa" in line for line in told)
    assert told[-2:] == DEPLOYED


def test_a_line_names_the_class_whose_controller_it_names() -> None:
    one = service(key="aaa/controller")
    both = (Host(HOST, "Ingress web/b", "other", (OTHER_BALANCER,)), Host(HOST, "Ingress web/a", "nginx", (BALANCER,)))
    dead = (*probes_at(OTHER_CONTROLLER, REJECTS), *probes_at(OTHER_BALANCER, REFUSED))
    seen = facts(one, services=(one, other_service()), hosts=both, probes=(*controller_probes(REQUIRES), *dead))
    told = lines(named(judge(replace(seen, lookups=(answering(OTHER_BALANCER),))), "balancer-unserved"))
    assert f"DNSPROXY_TARGET_FOR=other=service:{OTHER_KEY}" in told


def test_a_controller_that_answers_400_to_everything_is_read_and_not_relayed() -> None:
    refusing = (Outcome.BAD_REQUEST,) * 3
    finding = named(judge(led_to(BALANCER, REFUSED, controller=refusing)), "balancer-unserved")
    assert not any("install" in line or "apply -k" in line for line in lines(finding))


@pytest.mark.parametrize("controller", [REQUIRES, REJECTS], ids=["requires", "rejects"])
@pytest.mark.parametrize("neighbour", ["other", "nginx"], ids=["another class", "one class"])
def test_an_installation_takes_no_value_for_the_sake_of_other_classes(
    controller: tuple[Outcome, ...], neighbour: str
) -> None:
    # Only names of classes that are steered are answered.
    at = BALANCER if neighbour == "nginx" else OTHER_BALANCER
    hosts = (Host(HOST, "Ingress web/a", "nginx", (BALANCER,)), Host(OTHER_HOST, "Ingress web/b", neighbour, (at,)))
    served = probes_at(OTHER_BALANCER, SERVED, hostname=OTHER_HOST)
    seen = facts(
        services=(service(), other_service()),
        hosts=hosts,
        lookups=(answering(BALANCER), answering(at, hostname=OTHER_HOST)),
        probes=(*controller_probes(controller), *balancer_probes(*REQUIRES), *served),
    )
    (finding,) = (one for one in judge(seen).findings if one.id == "short-circuited")
    settings = [line for line in lines(finding) if line.startswith(("DNSPROXY_", "PROXY_"))]
    assert settings == ([TARGET] if controller == REJECTS else [])
    assert lines(finding)[-2:] == DEPLOYED


@pytest.mark.parametrize("key", ["haproxy/controller", "kube-system/traefik", "tenant-root/root-ingress-controller"])
def test_whatever_the_controller_is_called_the_installation_takes_no_value(key: str) -> None:
    finding = named(diagnose(service(key=key)), "short-circuited")
    assert lines(finding)[-2:] == DEPLOYED
    assert "route Service" not in finding.steps[-1].text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"type": "ClusterIP", "external_ips": (BALANCER,), "points": ()}, BALANCER),
        ({"points": HOSTNAME}, "lb.example.org"),
    ],
    ids=["external IPs", "a hostname in the status"],
)
def test_what_operate_does_not_steer_takes_a_route_service_of_its_own(fields: dict[str, Any], status: str) -> None:
    hosts = (Host(HOST, "Ingress web/shop", "nginx", (status,)),)
    probes = (*controller_probes(REQUIRES), *balancer_probes(*REQUIRES))
    seen = facts(service(**fields), hosts=hosts, probes=probes)
    steps = [step for one in judge(seen).findings for step in one.steps if "a relay that adds" in step.text]
    assert steps
    assert all("write a route Service for it (deploy/README.md)" in step.text for step in steps)


GARBAGE = (Outcome.GARBAGE,) * 3
HEADED = (Outcome.CLOSED, Outcome.GARBAGE, Outcome.GARBAGE)


@pytest.mark.parametrize(("http", "https"), [(REJECTS, GARBAGE), (REQUIRES, HEADED)], ids=["rejects", "requires"])
def test_nothing_in_the_cluster_takes_over_from_a_load_balancer_that_ends_tls(http: Any, https: Any) -> None:
    digital_ocean = service({"service.beta.kubernetes.io/do-loadbalancer-protocol": "https"})
    seen = facts(digital_ocean, probes=(*two_ports(CONTROLLER, http, https), *two_ports(BALANCER, http, https)))
    seen = replace(seen, hosts=tuple(replace(one, tls=True) for one in seen.hosts))
    (finding,) = (one for one in judge(seen).findings if one.id in ("short-circuited", "balancer-unserved"))
    told = " ".join(lines(finding))
    assert "do-loadbalancer-hostname=" in told
    assert not any(word in told for word in ("DNSPROXY", "install", "haproxy-protocol"))
    assert "TLS ends at its load balancer" in finding.steps[-1].text


def test_pods_that_are_led_past_the_end_of_tls_are_not_known_to_be_served_by_https() -> None:
    diagnosis = diagnose(probes=(*two_ports(CONTROLLER, REJECTS, GARBAGE), *two_ports(BALANCER, SERVED, GARBAGE)))
    assert (bad(diagnosis), diagnosis.status) == (set(), ExitStatus.UNKNOWN)
    assert "https://" in diagnosis.unseen[0].what
    ended = (*two_ports(CONTROLLER, REJECTS, GARBAGE), *two_ports(BALANCER, SERVED, SERVED))
    assert diagnose(probes=ended).status == ExitStatus.DONE
