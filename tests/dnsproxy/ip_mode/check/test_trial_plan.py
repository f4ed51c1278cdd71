"""Whom a trial is for, what it dials, and what it restores."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.ip_mode_judgement import IpModeJudgement
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.check.checked import Checked
from dnsproxy.ip_mode.check.trial_plan import (
    ANY_HOST,
    make_write,
    modes_before,
    restoring,
    trial_targets,
    why_no_trial,
)
from dnsproxy.ip_mode.check.trial_result import Trial
from dnsproxy.ip_mode.results import Effect, Proof
from sidecar.kubernetes.structs.network import LoadBalancerPoint
from tests.dnsproxy.doctor.making import BALANCER, HOST, IP, service

SAFE = IpModeJudgement(Answer.NO, "it sends the header")
OTHER = "203.0.113.11"


def checked(judgement: IpModeJudgement = SAFE, **changes: Any) -> Checked:
    return replace(Checked(service(points=IP), (HOST,), "Hetzner", judgement), **changes)


REFUSED = [
    pytest.param(checked(), True, "", id="nothing is in the way"),
    pytest.param(checked(), False, "only in a pod", id="outside the cluster"),
    pytest.param(checked(IpModeJudgement(Answer.YES, "MetalLB")), True, "MetalLB", id="it would harm"),
    pytest.param(
        checked(IpModeJudgement(Answer.UNKNOWN, "who knows")), True, "--balancer-ends-connections", id="it may harm"
    ),
    pytest.param(checked(replace(SAFE, obstacles=("an old kube-proxy",))), True, "an old", id="an obstacle"),
    pytest.param(checked(takes_bare=True), True, "without the PROXY header", id="pods are served already"),
    pytest.param(checked(replace(SAFE, already=True)), True, "already", id="it is Proxy"),
    pytest.param(checked(proof=Proof(Effect.YES)), True, "already", id="the policy is in effect"),
    pytest.param(checked(service=service(points=IP, ports=(Port(22, "ssh"),))), True, "HTTP or TLS", id="no web port"),
]


@pytest.mark.parametrize(("one", "in_pod", "said"), REFUSED)
def test_a_service_is_tried_only_if_nobody_is_harmed(one: Checked, in_pod: bool, said: str) -> None:
    reason = why_no_trial(one, in_pod=in_pod)
    assert said in reason
    assert bool(reason) is bool(said)


def test_every_web_port_of_every_short_circuited_address_is_dialled_bare() -> None:
    points = (*IP, BalancerAddress(ip=OTHER, ip_mode="Proxy"), BalancerAddress(hostname="lb.example.org"))
    targets = trial_targets(service(points=points, ports=(Port(80), Port(443), Port(9090, "metrics"))), HOST)
    assert [(str(one.endpoint), one.tls, one.header) for one in targets] == [
        (f"{BALANCER}:80", False, Header.PLAIN),
        (f"{BALANCER}:443", True, Header.PLAIN),
    ]
    assert {one.hostname for one in trial_targets(service(points=IP), "")} == {ANY_HOST}


def point(ip: str = "", mode: str | None = None, hostname: str | None = None) -> LoadBalancerPoint:
    return LoadBalancerPoint(ip=ip or None, ip_mode=mode, hostname=hostname)


def added(number: int, mode: str) -> dict[str, Any]:
    return {"op": "add", "path": f"/status/loadBalancer/ingress/{number}/ipMode", "value": mode}


RESTORED = [
    pytest.param([point(BALANCER, "VIP")], [point(BALANCER, "Proxy")], [added(0, "VIP")], id="as it was"),
    pytest.param([point(BALANCER)], [point(BALANCER, "Proxy")], [added(0, "VIP")], id="no ipMode means VIP"),
    pytest.param([point(BALANCER, "VIP")], [point(BALANCER, "VIP")], [], id="the provider wrote VIP meanwhile"),
    pytest.param([point(BALANCER, "Proxy")], [point(BALANCER, "Proxy")], [], id="it was Proxy before"),
    pytest.param([point(BALANCER, "VIP")], [point(OTHER, "Proxy")], [], id="an address that was not there before"),
    pytest.param([point(BALANCER, "VIP")], [], [], id="the addresses are gone"),
    pytest.param(
        [point(BALANCER, "VIP"), point(OTHER, "Proxy")],
        [point(hostname="lb.example.org"), point(OTHER, "Proxy"), point(BALANCER, "Proxy")],
        [added(2, "VIP")],
        id="another order, and a hostname",
    ),
]


@pytest.mark.parametrize(("before", "now", "operations"), RESTORED)
def test_each_address_gets_the_mode_of_before(
    before: list[LoadBalancerPoint], now: list[LoadBalancerPoint], operations: list[dict[str, Any]]
) -> None:
    assert restoring(now, modes_before(before)) == operations


def test_a_write_is_valid_for_one_version_alone() -> None:
    write = make_write(ObjectRef("a", "b"), [added(0, "VIP")], "7")
    assert write.path == "/api/v1/namespaces/a/services/b/status"
    assert json.loads(write.content) == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        added(0, "VIP"),
    ]


def probe(outcome: Outcome) -> Probe:
    return Probe(BALANCER, 80, HOST, tls=False, header=Header.PLAIN, outcome=outcome)


TRIALS = [
    pytest.param(Trial((), (probe(Outcome.ANSWERED),), 2), Answer.YES, Answer.YES, id="answered"),
    pytest.param(Trial((), (probe(Outcome.CLOSED),), 30), Answer.NO, Answer.NO, id="closed"),
    pytest.param(
        Trial((), (probe(Outcome.ANSWERED), probe(Outcome.SILENT)), 30), Answer.NO, Answer.NO, id="one of two"
    ),
    pytest.param(Trial(()), Answer.UNKNOWN, Answer.YES, id="not written: the judgement stays"),
    pytest.param(
        Trial((), (probe(Outcome.ANSWERED),), failure="ended by a signal"), Answer.UNKNOWN, Answer.YES, id="ended early"
    ),
]


@pytest.mark.parametrize(("trial", "answer", "helps"), TRIALS)
def test_a_trial_that_ended_decides(trial: Trial, answer: Answer, helps: Answer) -> None:
    assert trial.answer is answer
    assert checked(trial=trial).helps is helps
    assert trial.why
