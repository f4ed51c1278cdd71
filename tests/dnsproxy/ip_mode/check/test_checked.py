"""The verdict of --check, its lines and its JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dnsproxy.doctor.judge.ip_mode_judgement import SIDE_EFFECTS, IpModeJudgement, Open
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.check.checked import Checked, Cluster, Count, status_of
from dnsproxy.ip_mode.check.printing import format_check, format_document
from dnsproxy.ip_mode.check.unlisted_port import WayOut
from dnsproxy.ip_mode.results import Effect, Proof
from dnsproxy.ip_mode.status_writers import StatusWriter
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import HOST, IP, KEY, PROXY_MODE, service

SAFE = IpModeJudgement(Answer.NO, "it sends the header")
CLUSTER = Cluster("kube-proxy 1.36.3 in mode nftables", "DaemonSet kube-system/kube-proxy", "v1.36.3", "v1")
DOUBT = Open("whether clients would be cut off", "look at packets")


def checked(judgement: IpModeJudgement = SAFE, **changes: Any) -> Checked:
    return replace(Checked(service(points=IP), (HOST,), "Hetzner", judgement), **changes)


CASES = [
    pytest.param(checked(), Answer.YES, "yes", id="it helps"),
    pytest.param(checked(replace(SAFE, already=True)), Answer.YES, "yes, and it does", id="it does already"),
    pytest.param(checked(replace(SAFE, open=(DOUBT,))), Answer.UNKNOWN, "not known: whether", id="open"),
    pytest.param(
        checked(replace(SAFE, open=(DOUBT,), already=True)), Answer.UNKNOWN, "not known (every", id="open, set already"
    ),
    pytest.param(checked(replace(SAFE, obstacles=("an old kube-proxy",))), Answer.NO, "no: an old", id="an obstacle"),
    pytest.param(checked(takes_bare=True), Answer.NO, "no: the controller serves", id="pods are served already"),
    pytest.param(
        checked(IpModeJudgement(Answer.YES, "MetalLB passes packets on")), Answer.NO, "no, it would harm", id="harm"
    ),
    pytest.param(
        checked(IpModeJudgement(Answer.YES, "MetalLB", obstacles=("an old kube-proxy",))),
        Answer.NO,
        "no, it would harm",
        id="harm is said before an obstacle",
    ),
]


@pytest.mark.parametrize(("one", "helps", "verdict"), CASES)
def test_one_no_is_a_no_and_one_doubt_is_a_doubt(one: Checked, helps: Answer, verdict: str) -> None:
    assert one.helps is helps
    assert one.verdict.startswith(verdict)


STATUSES = [
    pytest.param((Answer.YES,), 0, id="yes"),
    pytest.param((Answer.YES, Answer.UNKNOWN), 3, id="one is not known"),
    pytest.param((Answer.YES, Answer.UNKNOWN, Answer.NO), 1, id="one no"),
    pytest.param((), 3, id="none"),
]
BY_ANSWER = {
    Answer.YES: checked(),
    Answer.NO: checked(takes_bare=True),
    Answer.UNKNOWN: checked(replace(SAFE, open=(DOUBT,))),
}


@pytest.mark.parametrize(("answers", "status"), STATUSES)
def test_the_exit_status_is_that_of_the_worst(answers: tuple[Answer, ...], status: int) -> None:
    assert status_of(tuple(BY_ANSWER[answer] for answer in answers)) == status


def lines(one: Checked, cluster: Cluster = CLUSTER, *, dialled: bool = True) -> str:
    return "\n".join(format_check(cluster, [one], dialled=dialled))


def test_the_lines_have_the_evidence_and_what_to_type() -> None:
    text = lines(
        checked(
            writers=(StatusWriter("hcloud-ccm", "Update", "2026-01-01T00:00:00Z"),),
            count=Count(60, 2),
            ways=(WayOut(Answer.YES, "203.0.113.10:64999: refused"),),
        )
    )
    for part in (
        f"Service {KEY}: yes",
        f"hosts: {HOST}",
        "ipMode VIP",
        "hcloud-ccm (Update, last at 2026-01-01T00:00:00Z)",
        "writes of the status in 60 s: 2",
        "from here: 203.0.113.10:64999",
        CLUSTER.plane,
        f"dnsproxy ip-mode --apply --service {KEY} --rewrite",
        *SIDE_EFFECTS,
    ):
        assert part in text
    assert "Nothing was dialled" not in text


def test_a_doubt_says_how_to_end_it_and_which_flag_takes_the_word_of_the_user() -> None:
    text = lines(checked(replace(SAFE, open=(DOUBT,))))
    assert "open: whether clients would be cut off; look at packets" in text
    assert "--balancer-ends-connections" in text


def test_without_the_api_of_the_policy_the_watcher_is_offered() -> None:
    text = lines(checked(), replace(CLUSTER, api_version="", why_no_policy="upgrade to 1.36"), dialled=False)
    assert f"dnsproxy ip-mode --watch --service {KEY}" in text
    assert "--rewrite" not in text
    assert "upgrade to 1.36" in text
    assert "Nothing was dialled" in text


@pytest.mark.parametrize("one", [checked(takes_bare=True), checked(replace(SAFE, already=True))], ids=["no", "done"])
def test_where_it_helps_nothing_or_is_done_there_is_nothing_to_type(one: Checked) -> None:
    assert "Next:" not in lines(one)


POLICIES = [
    pytest.param(checked(), "not selected", id="not selected"),
    pytest.param(checked(selected=True, proof=Proof(Effect.YES, None, "it becomes Proxy")), "in effect: it", id="yes"),
    pytest.param(checked(selected=True, proof=Proof(Effect.NO, None, "VIP")), "not in effect: VIP", id="no"),
    pytest.param(checked(selected=True, proof=Proof(Effect.UNKNOWN)), "is unknown", id="unknown"),
]


@pytest.mark.parametrize(("one", "said"), POLICIES)
def test_a_policy_in_the_cluster_is_reported(one: Checked, said: str) -> None:
    assert said in lines(one, replace(CLUSTER, has_policy=True))


def test_the_document_has_what_the_lines_say() -> None:
    one = checked(replace(SAFE, already=True), service=service(points=PROXY_MODE))
    document = format_document(CLUSTER, [one], status=ExitStatus.DONE, dialled=False)
    (found,) = document["services"]
    assert (document["status"], document["api_version"], found["helps"]) == (0, "v1", "yes")
    assert list(found["entries"]) == [{"ip": IP[0].ip, "ip_mode": "Proxy"}]
