"""The outcome of an install or an uninstall as a verdict and an exit status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.config_map import Edits, Wanted
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.report.outcome import RunReport, format_document, format_lines, judge_install, judge_uninstall
from dnsproxy.install.report.rights import grants_of
from dnsproxy.install.report.verdict import Verdict
from tests.dnsproxy.corefile.shapes import address
from tests.dnsproxy.install.report.test_verdict import OTHER, OURS, SILENT, asked, report
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick
from tests.kit.manifest_edits import plan, play

NOTHING = Edits(None, ())
WROTE: dict[str, bool] = {"wrote": True, "reverted": False, "asked": True}


def kubeadm(old: str = "", new: str = "") -> list[Manifest]:
    """A cluster that was installed into; its Corefile may be written differently before."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace(old, new)
    return play(objects, plan(objects))


def judged(
    objects: list[Manifest], *loaded: ProbeResult, answers: tuple[ProbeResult, ...] = (), **options: Any
) -> Verdict:
    choice = choose_method(discover(objects))
    return judge_install(report(objects, loaded, answers), choice, **{**WROTE, **options})


@pytest.mark.parametrize(
    ("loaded", "status", "text"),
    [
        ([asked(OURS, OURS)], 0, "installed and loaded"),
        ([asked(OURS, OTHER)], 1, "written, not loaded: some pods have loaded it and others not yet"),
        ([asked(OTHER)], 1, "written, not loaded: a ConfigMap takes up to two minutes"),
        (
            [asked(SILENT)],
            3,
            "written; whether it is loaded is unknown, because 10.96.0.10 does not answer from here",
        ),
        ([asked(OURS), asked(SILENT)], 0, "installed and loaded"),
    ],
    ids=["yes", "partly", "no", "silent", "one family"],
)
def test_written_and_loaded_are_different_results(loaded: list[ProbeResult], status: int, text: str) -> None:
    verdict = judged(kubeadm(), *loaded)
    assert verdict.status == status
    assert verdict.text.startswith(text)


def test_a_missing_reload_plugin_is_the_cause() -> None:
    verdict = judged(kubeadm("    reload\n"), asked(OTHER))
    assert "there is no reload plugin: restart Deployment kube-system/coredns" in verdict.text


def test_a_dnsproxy_that_does_not_answer_is_the_cause() -> None:
    verdict = judged(kubeadm(), asked(OTHER), answers=(asked(SILENT, endpoint=address("10.96.0.53")),))
    assert verdict.text.startswith("written, not loaded: dnsproxy does not answer at 10.96.0.53")


def test_pods_that_do_not_come_up_are_named() -> None:
    objects = kubeadm()
    pick(objects, "Deployment", "coredns")["status"]["readyReplicas"] = 0
    assert "0 of 2 pods of Deployment kube-system/coredns are ready" in judged(objects, asked(OTHER)).text


def test_what_was_undone_names_who_and_the_way_out() -> None:
    objects = manifests("aks")
    choice = choose_method(discover(objects), Method.COREFILE)
    verdict = judge_install(report(objects, ()), choice, wrote=True, reverted=True, asked=True)
    assert verdict.status == 1
    assert "it was undone, apparently by the cluster's addon manager: the addon manager undoes edits" in verdict.text
    assert verdict.text.endswith("dnsproxy install --method print")


def test_what_went_while_it_was_waited_for_was_undone_too() -> None:
    verdict = judged(manifests("kubeadm"), asked(OTHER))
    assert verdict.text.startswith("written, not loaded: it was undone, apparently by ")


def test_who_does_not_want_to_wait_is_told_so() -> None:
    silent = asked(SILENT)
    assert judged(kubeadm(), silent, asked=False) == Verdict(0, "written; whether it is loaded was not checked")
    assert judged(kubeadm(), silent, asked=False, wrote=False).text.startswith("unchanged; ")


@pytest.mark.parametrize(
    ("edits", "loaded", "options", "status", "text"),
    [
        (NOTHING, [asked(OTHER)], {}, 0, "removed, and the cluster's DNS no longer asks dnsproxy"),
        (NOTHING, [asked(OTHER)], {"wrote": False}, 0, "not installed: there is nothing to remove"),
        (NOTHING, [], {"wrote": False, "asked": False}, 0, "not installed: there is nothing to remove"),
        (NOTHING, [asked(OURS)], {}, 1, "removed, and the cluster's DNS still asks dnsproxy: a ConfigMap takes"),
        (NOTHING, [asked(OURS, OTHER)], {}, 1, "removed, and the cluster's DNS still asks dnsproxy"),
        (
            NOTHING,
            [asked(OURS)],
            {"wrote": False},
            1,
            "nothing has Switchback's markers, and the cluster's DNS still asks dnsproxy",
        ),
        (NOTHING, [asked(OTHER)], {"does": "rewrites"}, 0, "removed, and the cluster's DNS no longer rewrites"),
        (NOTHING, [asked(OURS)], {"does": "rewrites"}, 1, "removed, and the cluster's DNS still rewrites: a"),
        (NOTHING, [asked(SILENT)], {}, 3, "removed; whether it is still loaded is unknown"),
        (NOTHING, [], {}, 3, "removed; whether it is still loaded is unknown"),
        (NOTHING, [], {"asked": False}, 0, "removed; whether it is still loaded was not checked"),
        (NOTHING, [asked(OTHER)], {"reverted": True}, 1, "not removed: another program has written it again"),
        (
            Edits(None, (), refusals=("x, line 3",)),
            [asked(OTHER)],
            {},
            1,
            "not everything was removed: x, line 3",
        ),
    ],
)
def test_an_uninstall_is_done_when_nobody_asks_dnsproxy_any_more(
    edits: Edits, loaded: Sequence[ProbeResult], options: dict[str, Any], status: int, text: str
) -> None:
    verdict = judge_uninstall(edits, loaded, **{**WROTE, **options})
    assert verdict.status == status
    assert verdict.text.startswith(text)


def told(objects: list[Manifest], **options: Any) -> RunReport:
    found = discover(objects)
    edits = plan(objects)
    return RunReport(edits, choose_method(found), (address(),), "", grants_of(found.asked, edits.changes), **options)


def test_the_lines_of_rewrites_count_names_in_place_of_zones_and_addresses() -> None:
    found = discover(manifests("cozystack"))
    choice = choose_method(found)
    names = (Rewrite("app.example.org", Reach.NAME, "switchback/relay"),)
    edits = plan_apply(found, choice, Wanted((), (), LiveRewrites(names, answered=1)))
    made = RunReport(edits, choice, (), "", (), names="1 names, each to its Service")
    assert list(format_lines(made)) == [
        "method   override-rewrites: switchback.override in ConfigMap kube-system/coredns-custom",
        "names    1 names, each to its Service",
        "changes  ConfigMap kube-system/coredns-custom (switchback.override)",
    ]
    document = format_document(made, Verdict(0, "done"))
    assert (document["zones"], document["addresses"], document["method"]) == ([], [], "override-rewrites")
    assert document["names"] == {"rewritten": ["app.example.org"], "left_out": [], "kept": [], "refused": {}}
    assert format_document(told(kubeadm()), Verdict(0, "done"))["names"] is None


def test_the_lines_say_what_is_about_to_be_done() -> None:
    assert list(format_lines(told(manifests("k3s")))) == [
        "method   import: switchback.server in ConfigMap kube-system/coredns-custom",
        "zones    shop.example.net, example.org",
        "asks     10.96.0.53",
        "creates  ConfigMap kube-system/coredns-custom (switchback.server, switchback.dev/made)",
    ]
    objects = kubeadm()
    assert not [line for line in format_lines(told(objects)) if line.startswith("changes")]


def test_the_document_has_all_of_it() -> None:
    document = format_document(told(manifests("gke"), wrote=True, loaded=(asked(OURS),)), Verdict(0, "done"))
    assert json.loads(json.dumps(document)) == document
    (change,) = document["changes"]
    assert (change["config_map"], change["verb"]) == ("kube-system/kube-dns", "patch")
    assert change["keys"] == ["stubDomains"]
    assert change["annotations"] == ["switchback.dev/stub-domains"]
    assert "+{" in change["diff"]
    assert document["target"] == {"config_map": "kube-system/kube-dns", "key": "stubDomains"}
    assert document["loaded"][0]["state"] == "yes"
    assert document["rbac"][0]["metadata"]["namespace"] == "kube-system"
    uninstalling = format_document(RunReport(NOTHING, choose_method(discover([])), (), "", ()), Verdict(0, "x"))
    assert (uninstalling["method"], uninstalling["target"], uninstalling["changes"]) == (None, None, [])
