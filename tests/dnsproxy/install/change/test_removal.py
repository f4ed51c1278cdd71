"""What an uninstall removes: complete, incomplete and damaged stanzas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.install.change.config_map import MADE
from tests.kit.manifest_cluster import Manifest, manifests, pick
from tests.kit.manifest_edits import plan, plan_out, play, without_versions


def custom(objects: list[Manifest]) -> dict[str, Any]:
    return pick(objects, "ConfigMap", "coredns-custom")


def stubs(objects: list[Manifest]) -> dict[str, Any]:
    return pick(objects, "ConfigMap", "kube-dns")


def test_what_was_made_for_us_goes_with_our_key() -> None:
    before = manifests("k3s")
    there = play(before, plan(before))
    assert custom(there)["metadata"]["annotations"] == {MADE: "object"}
    assert without_versions(play(there, plan_out(there))) == without_versions(before)


def test_what_was_made_for_us_stays_with_the_keys_of_others() -> None:
    there = play(manifests("k3s"), plan(manifests("k3s")))
    custom(there)["data"]["theirs.server"] = "a.test {\n}\n"
    left = custom(play(there, plan_out(there)))
    assert left["data"] == {"theirs.server": "a.test {\n}\n"}
    assert "annotations" not in left["metadata"]


def test_what_was_made_for_us_and_emptied_by_others_goes() -> None:
    before = manifests("k3s")
    there = play(before, plan(before))
    del custom(there)["data"]
    assert without_versions(play(there, plan_out(there))) == without_versions(before)


def test_what_is_not_marked_as_made_for_us_stays_though_it_is_empty() -> None:
    there = play(manifests("k3s"), plan(manifests("k3s")))
    del custom(there)["metadata"]["annotations"]
    left = custom(play(there, plan_out(there)))
    assert "data" not in left


HALVES: list[Any] = [
    pytest.param(
        lambda one: one["data"].update(stubDomains='{"corp.example.net": ["198.51.100.53"]}\n'), id="no zones"
    ),
    pytest.param(
        lambda one: one["data"].update(
            stubDomains='{"example.org": ["10.96.0.53"], "corp.example.net": ["198.51.100.53"]}\n'
        ),
        id="one zone, first",
    ),
    pytest.param(lambda one: one["metadata"]["annotations"].update({"theirs": "x"}), id="another annotation"),
]


@pytest.mark.parametrize("damage", HALVES)
def test_zones_of_ours_go_as_far_as_they_are_there(damage: Callable[[dict[str, Any]], None]) -> None:
    before = manifests("gke")
    there = play(before, plan(before))
    damage(stubs(there))
    left = play(there, plan_out(there))
    assert stubs(left)["data"] == stubs(before)["data"]
    assert ANNOTATION not in (stubs(left)["metadata"].get("annotations") or {})
    assert not plan_out(left).changed


def test_a_zone_without_our_annotation_is_somebody_elses() -> None:
    there = play(manifests("gke"), plan(manifests("gke")))
    del stubs(there)["metadata"]["annotations"]
    assert not plan_out(there).changed


def test_what_is_damaged_stays_is_told_and_the_rest_goes() -> None:
    there = play(manifests("aks"), plan(manifests("aks")))
    data = pick(there, "ConfigMap", "coredns")["data"]
    data["Corefile"] = "# BEGIN switchback\n" + data["Corefile"]
    out = plan_out(there)
    (refusal,) = out.refusals
    assert refusal.startswith("Corefile in ConfigMap kube-system/coredns, line 1: a marker stands alone")
    left = play(there, out)
    assert "switchback.server" not in custom(left).get("data", {})
    assert pick(left, "ConfigMap", "coredns")["data"] == data


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{\n", "is not a plugin"),
        ("[1]", "it is no JSON object"),
    ],
    ids=["Corefile", "JSON"],
)
def test_what_can_no_longer_be_read_is_told(text: str, reason: str) -> None:
    name = "gke" if reason.startswith("it is") else "kubeadm"
    there = play(manifests(name), plan(manifests(name)))
    if name == "gke":
        stubs(there)["data"]["stubDomains"] = text
    else:
        data = pick(there, "ConfigMap", "coredns")["data"]
        data["Corefile"] = f"{text}{data['Corefile']}"
    out = plan_out(there)
    assert not out.changed
    assert reason in out.refusals[0]


def test_somebody_who_took_our_upstreams_for_his_is_not_left_without_any() -> None:
    there = play(manifests("k0s"), plan(manifests("k0s"), method=Method.COREFILE))
    data = pick(there, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    forward . /etc/resolv.conf\n", "")
    out = plan_out(there)
    assert not out.changed
    assert "nothing outside the cluster would resolve" in out.refusals[0]


def test_traces_of_all_methods_at_once_go_at_once() -> None:
    before = manifests("k3s-2025")
    inside = play(before, plan(before, method=Method.COREFILE))
    corefile = pick(inside, "ConfigMap", "coredns")["data"]["Corefile"]
    both = play(before, plan(before, method=Method.IMPORT))
    pick(both, "ConfigMap", "coredns")["data"]["Corefile"] = corefile
    out = plan_out(both)
    assert len(out.changes) == 2
    assert without_versions(play(both, out)) == without_versions(before)


def test_a_cluster_that_nobody_installed_into_is_left_alone() -> None:
    for name in ("k3s", "gke", "openshift", "kops-nodelocal"):
        out = plan_out(manifests(name))
        assert (out.changes, out.refusals, out.zones) == ((), (), ())


@pytest.mark.parametrize("method", [Method.COREFILE, Method.IMPORT])
def test_a_stanza_that_alone_forwards_its_zones_stays_also_beside_imports(method: Method) -> None:
    before = manifests("k3s-2025")
    there = play(before, plan(before, method=method))
    data = pick(there, "ConfigMap", "coredns")["data"]
    head, own, rest = data["Corefile"].rpartition("forward . /etc/resolv.conf")
    assert own
    data["Corefile"] = head + rest
    edits = plan_out(there)
    assert not edits.changed
    assert len(edits.refusals) == 1
    assert "would resolve; put its own `forward" in edits.refusals[0]
