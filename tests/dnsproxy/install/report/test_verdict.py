"""The verdict follows from the report: installed, loaded, silent, damaged or unreadable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import choose_method
from dnsproxy.cluster_dns.probe_results import Outcome, ProbeResult
from dnsproxy.cluster_dns.requests import Denied
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.rewrite_lines import Rewrite, format_rewrites
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.change.drift import Drift
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage
from dnsproxy.install.report.verdict import StatusReport, judge
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.cluster_dns.test_traces import custom, marked
from tests.dnsproxy.corefile.shapes import installed
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick

OURS, OTHER = Outcome(ours=True, rcode=0), Outcome(rcode=3)
SILENT = Outcome(fault="no answer")
CLUSTER_DNS, DNSPROXY = Endpoint("10.96.0.10", 53), Endpoint("10.96.0.53", 53)


def asked(*outcomes: Outcome, endpoint: Endpoint = CLUSTER_DNS, zone: str = ".") -> ProbeResult:
    return ProbeResult(endpoint, zone, outcomes)


def with_stanza(change: Any = None) -> list[Manifest]:
    """A kubeadm cluster with the stanza."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = installed(data["Corefile"]).new
    if change:
        data["Corefile"] = change(data["Corefile"])
    return objects


def report(
    objects: list[Manifest], loaded: tuple[ProbeResult, ...], answers: tuple[ProbeResult, ...] = ()
) -> StatusReport:
    return report_of(discover(objects), loaded, answers)


def report_of(found: Found, loaded: tuple[ProbeResult, ...], answers: tuple[ProbeResult, ...] = ()) -> StatusReport:
    return StatusReport(found, choose_method(found), find_traces(found), loaded, answers)


YES, NO = asked(OURS, OURS), asked(OTHER, OTHER)
PARTLY, NOTHING = asked(OURS, OTHER), asked(SILENT)


@pytest.mark.parametrize(
    ("objects", "loaded", "answers", "status", "words"),
    [
        (with_stanza(), (YES,), (YES,), 0, "installed and loaded: the cluster's DNS asks dnsproxy"),
        (with_stanza(), (YES, NOTHING), (), 0, "installed and loaded"),
        (manifests("eks-addon"), (YES,), (), 0, "by a configuration without Switchback's markers"),
        (with_stanza(), (NO,), (YES,), 1, "written, not loaded: a ConfigMap takes up to two minutes"),
        (with_stanza(), (PARTLY,), (YES,), 1, "some pods have loaded it and others not yet"),
        (with_stanza(), (YES, NO), (YES,), 1, "written, not loaded"),
        (with_stanza(), (NO,), (NOTHING,), 1, "dnsproxy does not answer at 10.96.0.10, so the second upstream does"),
        (
            with_stanza(lambda text: text.replace("reload\n", "\n")),
            (NO,),
            (YES,),
            1,
            "there is no reload plugin: restart",
        ),
        (with_stanza(), (NOTHING,), (), 3, "whether it is loaded is unknown"),
        (manifests("kubeadm"), (NO,), (), 1, "not installed; the method corefile fits"),
        (manifests("kubeadm"), (NOTHING,), (), 1, "not installed; the method corefile fits"),
        (manifests("eks-addon"), (NO,), (), 1, "the method print (EKS add-on configuration values) fits"),
        (manifests("eks-addon"), (NOTHING,), (), 3, "whether the owner was given a stanza is unknown from here"),
        ([], (), (), 1, "not installed; no method fits: there is no Service kube-dns"),
        (with_stanza(lambda text: text.replace("# END", "# END of")), (YES,), (YES,), 1, "installed, and damaged"),
    ],
)
def test_the_verdict_is_that_of_the_table(
    objects: list[Manifest], loaded: tuple[ProbeResult, ...], answers: tuple[ProbeResult, ...], status: int, words: str
) -> None:
    verdict = judge(report(objects, loaded, answers))
    assert words in verdict.text
    assert verdict.status == status


def test_what_could_not_be_read_is_neither_yes_nor_no() -> None:
    found = discover(with_stanza(), denies=lambda one: Denied("no") if one.kind.name == "DaemonSet" else None)
    verdict = judge(report_of(found, (YES,)))
    assert verdict.status == 3
    assert "not allowed to list daemonsets.apps in namespace kube-system" in verdict.text


def test_a_file_behind_the_forward_is_named_as_the_cause() -> None:
    text = marked("forward . 10.96.0.53 /etc/resolv.conf")
    verdict = judge(report(custom("k3s", switchback_override=text), (NO,)))
    assert "import /etc/coredns/custom/*.override stands after a forward" in verdict.text


def test_a_corefile_by_sub_path_is_named_as_the_cause() -> None:
    objects = with_stanza()
    container = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "config-volume", "mountPath": "/etc/coredns/Corefile", "subPath": "Corefile"}]
    assert "is mounted by subPath: restart" in judge(report(objects, (NO,))).text


TARGET = find_traces(discover(with_stanza()))[0].target
DRIFT = Drift(TARGET, "-old\n+new\n")
REFUSED = Drift(TARGET, "", "the server block of . has no forward")
MISSING = Coverage(("a.example.net",), ("example.net",), "the hosts of the cluster's Ingresses")


@pytest.mark.parametrize(
    ("loaded", "drift", "coverage", "status", "words"),
    [
        (YES, DRIFT, Coverage(), 1, "installed and loaded, and out of date: Corefile in ConfigMap kube-system/coredns"),
        (NO, DRIFT, Coverage(), 1, "written, not loaded: Corefile in ConfigMap kube-system/coredns differs"),
        (NOTHING, DRIFT, Coverage(), 1, "written, and out of date: Corefile in ConfigMap kube-system/coredns differs"),
        (YES, REFUSED, Coverage(), 1, "an install would be refused now: the server block of . has no forward"),
        (YES, None, MISSING, 1, "its zones do not contain a.example.net; run `dnsproxy install` again"),
        (YES, DRIFT, MISSING, 1, "again; its zones do not contain a.example.net"),
        (YES, None, replace(MISSING, chosen=True), 0, "installed and loaded"),
        (YES, None, Coverage(unknown="not allowed"), 0, "installed and loaded"),
        (NOTHING, None, Coverage(unknown="not allowed"), 3, "whether it is loaded is unknown"),
    ],
)
def test_what_is_out_of_date_is_status_1_whether_it_is_loaded_or_not(
    loaded: ProbeResult, drift: Drift | None, coverage: Coverage, status: int, words: str
) -> None:
    verdict = judge(replace(report(with_stanza(), (loaded,)), drift=drift, coverage=coverage))
    assert (verdict.status, words in verdict.text) == (status, True), verdict.text


def test_what_is_out_of_date_never_hides_that_something_could_not_be_read() -> None:
    found = discover(with_stanza(), denies=lambda one: Denied("no") if one.kind.name == "DaemonSet" else None)
    assert judge(replace(report_of(found, (YES,)), drift=DRIFT)).status == 3


LINES = format_rewrites([Rewrite("app.example.org", Reach.NAME, "switchback/relay")], "cluster.local")


def with_lines(*more: str) -> list[Manifest]:
    """A cozystack tenant with rewrite lines."""
    return custom("cozystack", switchback_override=marked(*more, *LINES))


@pytest.mark.parametrize(
    ("loaded", "status", "words"),
    [
        ((YES,), 0, "installed and loaded: the cluster's DNS rewrites 1 names to their Services"),
        ((NO,), 1, "written, not loaded: a ConfigMap takes up to two minutes to be loaded"),
        ((PARTLY,), 1, "written, not loaded: some pods have loaded it and others not yet"),
        ((NOTHING,), 3, "written; whether it is loaded is unknown"),
    ],
)
def test_rewrite_lines_are_judged_by_their_own_probe(loaded: tuple[ProbeResult, ...], status: int, words: str) -> None:
    # dnsproxy need not answer, and forwards nothing for the cluster's DNS.
    verdict = judge(report(with_lines(), loaded, (asked(OTHER, endpoint=DNSPROXY),)))
    assert verdict.status == status
    assert verdict.text.startswith(words)
    assert "second upstream" not in verdict.text
    assert "stands after a forward" not in verdict.text


def test_names_that_are_left_out_are_part_of_the_verdict() -> None:
    full = replace(report(with_lines(), (YES,)), names=RewriteCoverage(1, beyond=7))
    assert judge(full).text.endswith("rewrites 1 names to their Services; 7 more are left out beyond 500 lines")


def test_other_upstreams_do_not_matter_to_rewrite_lines() -> None:
    differs = ProbeResult(DNSPROXY, ".", (Outcome(ours=True, rcode=0, forwards=". 192.0.2.9"),))
    seen = report(with_lines(), (YES,), (differs,))
    assert (seen.rewrites, seen.upstreams.differences, seen.upstreams.asked) == (True, (), False)
    assert report(with_stanza(), (YES,), (differs,)).upstreams.differences


def test_edited_rewrite_lines_are_damaged() -> None:
    verdict = judge(report(with_lines("rewrite name a.example.org b.example.org"), (YES,)))
    assert (verdict.status, verdict.text.startswith("installed, and damaged: switchback.override in")) == (1, True)


def test_from_outside_an_owner_may_have_the_stanza_in_another_form() -> None:
    verdict = judge(report(manifests("cozystack"), (NOTHING,)))
    assert (verdict.status, "whether the owner was given a stanza is unknown" in verdict.text) == (3, True)
    assert judge(report(manifests("cozystack"), (NO,))).text == "not installed; the method override-rewrites fits"
