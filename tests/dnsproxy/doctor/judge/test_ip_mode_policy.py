"""Services that our policy selects: a status that does not show it, and a cluster that needs nothing else."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, IpModePolicy
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import Severity
from dnsproxy.doctor.judge.ip_mode_policy import ANNOTATION, is_selected
from tests.dnsproxy.doctor.making import (
    BALANCER,
    HOSTNAME,
    IP,
    KEY,
    OLD_IP,
    PROXY_MODE,
    REQUIRES,
    SERVED,
    answering,
    balancer_probes,
    controller_probes,
    diagnose,
    facts,
    ids,
    installed,
    lines,
    named,
    service,
)

PROXY = {ANNOTATION: "Proxy"}
THERE = IpModePolicy("v1", found=True, classes=("example.org/lb",))
UNBOUND = IpModePolicy("v1", found=True, bound=False)
GONE = IpModePolicy("v1", found=False)
MIXED = (*PROXY_MODE, BalancerAddress(ip="203.0.113.11"))
REACHED = (*controller_probes(REQUIRES), *balancer_probes(*SERVED))


@pytest.mark.parametrize(
    ("annotations", "load_balancer_class", "policy", "expected"),
    [
        (PROXY, "", None, True),
        (PROXY, "", GONE, True),
        ({}, "example.org/lb", THERE, True),
        ({ANNOTATION: "VIP"}, "example.org/lb", THERE, False),
        ({ANNOTATION: ""}, "example.org/lb", THERE, False),
        ({ANNOTATION: "proxy"}, "", THERE, False),
        ({}, "example.org/other", THERE, False),
        ({}, "", IpModePolicy("v1", found=True, classes=("",)), False),
        ({}, "example.org/lb", None, False),
    ],
    ids=["annotation", "annotation without policy", "class", "class and another mode", "class and an empty mode",
         "lower case", "another class", "no class", "a policy that was not read"],
)  # fmt: skip
def test_the_annotation_decides_then_the_class(
    annotations: dict[str, str], load_balancer_class: str, policy: IpModePolicy | None, expected: bool
) -> None:
    one = service(annotations, load_balancer_class=load_balancer_class)
    assert is_selected(one, facts(one, ip_mode_policy=policy)) is expected


@pytest.mark.parametrize("points", [IP, OLD_IP, MIXED], ids=["VIP", "no mode", "one of two"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (THERE, "the policy switchback-ip-mode exists: it changes a status only while somebody writes it"),
        (UNBOUND, "the policy switchback-ip-mode exists without its binding, so that it changes nothing"),
        (GONE, "the policy switchback-ip-mode does not exist"),
        (IpModePolicy("v1"), "whether the policy switchback-ip-mode exists is not known"),
        (None, "whether the policy switchback-ip-mode exists is not known"),
    ],
    ids=["there", "without its binding", "gone", "forbidden", "old facts"],
)
def test_a_selected_service_without_the_mode_is_a_finding(
    points: tuple[BalancerAddress, ...], policy: IpModePolicy | None, words: str
) -> None:
    finding = named(diagnose(service(PROXY, points=points), ip_mode_policy=policy), "ip-mode-not-applied")
    assert finding.severity is Severity.WARNING
    assert any(words in line for line in finding.evidence)
    (line,) = lines(finding)
    assert line.startswith("dnsproxy ip-mode --")
    assert f"--service {KEY}" in line


@pytest.mark.parametrize(
    ("annotations", "points"),
    [(PROXY, PROXY_MODE), (PROXY, HOSTNAME), (PROXY, ()), ({}, IP), ({ANNOTATION: "VIP"}, IP)],
    ids=["applied", "hostname alone", "no address yet", "not selected", "excluded"],
)
def test_others_are_none(annotations: dict[str, str], points: tuple[BalancerAddress, ...]) -> None:
    assert "ip-mode-not-applied" not in ids(diagnose(service(annotations, points=points), ip_mode_policy=THERE))


def test_switchbacks_other_parts_are_not_needed_and_the_policy_stays() -> None:
    seen = installed(
        service(PROXY, points=PROXY_MODE), probes=REACHED, lookups=(answering(BALANCER),), ip_mode_policy=THERE
    )
    finding = named(judge(seen), "no-longer-needed")
    # operate, and the installer of earlier versions, would restore the stanza.
    keepers = "kubectl -n switchback delete deployment operate dnsproxy-install --ignore-not-found"
    assert lines(finding) == [keepers, "dnsproxy uninstall"]
    assert "keep the policy switchback-ip-mode" in finding.steps[0].text
    assert any(KEY in line and "keep it" in line for line in finding.evidence)
    assert not any("--remove" in line for one in judge(seen).findings for line in lines(one))


def test_without_the_policy_all_of_switchback_may_go() -> None:
    seen = installed(service(points=PROXY_MODE), probes=REACHED, lookups=(answering(BALANCER),))
    finding = named(judge(seen), "no-longer-needed")
    assert lines(finding) == ["deploy/remove.sh my-cluster"]
    assert finding.evidence == ()


def test_a_cluster_with_the_policy_alone_is_well_and_keeps_it() -> None:
    diagnosis = diagnose(service(PROXY, points=PROXY_MODE), probes=REACHED, ip_mode_policy=THERE)
    assert diagnosis.status == 0
    assert any("keep it" in line for line in named(diagnosis, "not-needed").evidence)
