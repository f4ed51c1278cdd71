"""Discovery in each distribution of the corpus, and in broken clusters. Also tests found.py."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.cluster_dns.find import find
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.method_choice import choose_method
from dnsproxy.cluster_dns.requests import Blame, Denied, Request, Unreadable
from tests.kit.manifest_cluster import NAMES, Manifest, discover, faults_of, manifests, pick, read


@pytest.mark.parametrize(
    ("name", "service", "server", "version", "corefile"),
    [
        ("aks", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        (
            "coredns-chart",
            "kube-system/dns-coredns",
            "Deployment kube-system/dns-coredns",
            (1, 12, 3),
            "kube-system/dns-coredns",
        ),
        ("coreweave", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        ("cozystack", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 4), "kube-system/coredns"),
        ("doks", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 11, 3), "kube-system/coredns"),
        ("eks-addon", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 11, 4), "kube-system/coredns"),
        (
            "eks-self-managed",
            "kube-system/kube-dns",
            "Deployment kube-system/coredns",
            (1, 11, 4),
            "kube-system/coredns",
        ),
        ("gardener", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 14, 7), "kube-system/coredns"),
        ("gke", "kube-system/kube-dns", "Deployment kube-system/kube-dns", None, None),
        ("gke-kube-dns", "kube-system/kube-dns", "Deployment kube-system/kube-dns", None, None),
        ("idpbuilder", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        ("k0s", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 2), "kube-system/coredns"),
        ("k3s", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 0), "kube-system/coredns"),
        ("k3s-2025", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 13, 1), "kube-system/coredns"),
        ("kapsule", "kube-system/coredns", "Deployment kube-system/coredns", (1, 11, 4), "kube-system/coredns"),
        ("kops-forward", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        ("kops-nodelocal", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        ("kubeadm", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 1), "kube-system/coredns"),
        (
            "kubeadm-nodelocal",
            "kube-system/kube-dns",
            "Deployment kube-system/coredns",
            (1, 12, 1),
            "kube-system/coredns",
        ),
        ("kubespray", "kube-system/coredns", "Deployment kube-system/coredns", (1, 12, 4), "kube-system/coredns"),
        (
            "kubespray-coredns",
            "kube-system/coredns",
            "Deployment kube-system/coredns",
            (1, 12, 4),
            "kube-system/coredns",
        ),
        ("microk8s", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 10, 1), "kube-system/coredns"),
        ("minikube", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 11, 3), "kube-system/coredns"),
        (
            "openshift",
            "openshift-dns/dns-default",
            "DaemonSet openshift-dns/dns-default",
            None,
            "openshift-dns/dns-default",
        ),
        ("outscale", "kube-system/coredns", "Deployment kube-system/coredns", (1, 12, 3), "kube-system/coredns"),
        (
            "rke2",
            "kube-system/rke2-coredns-rke2-coredns",
            "Deployment kube-system/rke2-coredns-rke2-coredns",
            (1, 12, 2),
            "kube-system/rke2-coredns-rke2-coredns",
        ),
        (
            "rke2-nodelocal",
            "kube-system/rke2-coredns-rke2-coredns",
            "Deployment kube-system/rke2-coredns-rke2-coredns",
            (1, 12, 2),
            "kube-system/rke2-coredns-rke2-coredns",
        ),
        ("talos", "kube-system/kube-dns", "Deployment kube-system/coredns", (1, 12, 4), "kube-system/coredns"),
    ],
)
def test_the_server_of_a_distribution_is_found(
    name: str, service: str, server: str, version: tuple[int, ...] | None, corefile: str | None
) -> None:
    found = discover(manifests(name))
    assert found.service is not None
    assert f"{found.service.namespace}/{found.service.name}" == service
    assert str(found.server) == server
    assert found.server is not None
    assert found.server.version == version
    if corefile is None:
        assert found.server.corefile is None
    else:
        assert found.server.corefile is not None
        assert (str(found.server.corefile.source), found.server.corefile.key) == (corefile, "Corefile")
        assert found.server.corefile.value is not None
    assert found.faults == ()
    assert found.complete


def test_every_cluster_of_the_corpus_is_in_the_table() -> None:
    (mark,) = test_the_server_of_a_distribution_is_found.pytestmark  # type: ignore[attr-defined]
    assert [row[0] for row in mark.args[1]] == NAMES


def kubeadm(*changes: tuple[str, str, Any]) -> list[Manifest]:
    """A kubeadm cluster in which some fields, `KIND/path.to.field`, are another value; None takes the object out."""
    objects = manifests("kubeadm")
    for kind, path, value in changes:
        one: Any = pick(objects, kind, "kube-dns" if kind == "Service" else "coredns")
        if not path:
            objects.remove(one)
            continue
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        for step in steps:
            one = one[step]
        one[last] = value
    return objects


CONTAINER = "spec/template/spec/containers/0"
VOLUME = "spec/template/spec/volumes/0"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([("Service", "", None)], "there is no Service kube-dns in namespace kube-system; name the Service"),
        ([("Service", "spec/clusterIP", "None"), ("Service", "spec/clusterIPs", ["None"])], "has no ClusterIP"),
        ([("Service", "spec/clusterIP", None), ("Service", "spec/clusterIPs", None)], "has no ClusterIP"),
        ([("Service", "spec", None)], "has no ClusterIP"),
        ([("Service", "spec/selector", None)], "selects no pods"),
        ([("Service", "spec/selector", {})], "selects no pods"),
        ([("Service", "spec/ports", [{"port": 9153}])], "has no port 53"),
        ([("Service", "spec/ports", None)], "has no port 53"),
        ([("Service", "spec/selector", {"a": "b"})], r"no Deployment and no DaemonSet has the pods .* \(a=b\)"),
        ([("Deployment", "", None)], "no Deployment and no DaemonSet has the pods"),
        ([("Deployment", "spec", None)], "no Deployment and no DaemonSet has the pods"),
        ([("Deployment", "spec/template/metadata", None)], "no Deployment and no DaemonSet has the pods"),
        ([("Deployment", "spec/template/spec/containers", [])], "has no known container of CoreDNS or kube-dns"),
        ([("Deployment", "spec/template/spec/containers", None)], "has no known container of CoreDNS or kube-dns"),
        ([("Deployment", f"{CONTAINER}/image", "unbound:1.20")], "its images are unbound:1.20"),
        ([("Deployment", f"{CONTAINER}/image", None)], "its images are none"),
        ([("Deployment", f"{CONTAINER}/args", ["-conf", "/x/Corefile"])], "/x/Corefile, which is in its image"),
        ([("Deployment", f"{CONTAINER}/args", None)], "reads /Corefile, which is in its image"),
        ([("Deployment", f"{CONTAINER}/args", ["-conf", "$(WHERE)"])], r"has the path '\$\(WHERE\)'"),
        ([("Deployment", f"{CONTAINER}/command", ["sh", "-c"])], "starts a shell"),
        ([("Deployment", f"{CONTAINER}/args", ["-conf", "stdin"])], "from stdin"),
        ([("Deployment", f"{CONTAINER}/volumeMounts", None)], "no volume is mounted there"),
        ([("Deployment", f"{CONTAINER}/volumeMounts/0/name", "other")], "no volume is mounted there"),
        ([("Deployment", f"{CONTAINER}/volumeMounts/0/subPathExpr", "$(X)")], "/etc/coredns is a subPathExpr"),
        ([("Deployment", f"{CONTAINER}/volumeMounts/0/subPath", "x")], "shows ConfigMap coredns"),
        ([("Deployment", f"{VOLUME}/configMap", None)], "is a volume of another kind"),
        ([("Deployment", f"{VOLUME}/configMap/items", [{"key": "Corefile", "path": "x"}])], "which no ConfigMap has"),
        ([("Deployment", f"{VOLUME}/configMap/name", "gone")], "ConfigMap kube-system/gone, .*, does not exist"),
        ([("Deployment", f"{VOLUME}/configMap/name", None)], "which no ConfigMap has"),
        ([("ConfigMap", "", None)], "ConfigMap kube-system/coredns, which .* mounts, does not exist"),
        ([("ConfigMap", "data", None)], "which no ConfigMap has: /etc/coredns shows ConfigMap coredns"),
        ([("ConfigMap", "data", {})], "which no ConfigMap has"),
        ([("ConfigMap", "data", {"corefile": "."})], "which no ConfigMap has"),
        ([("ConfigMap", "data/Corefile", "")], "Corefile in ConfigMap kube-system/coredns is empty"),
        ([("ConfigMap", "data/Corefile", " \n\t")], "is empty"),
        ([("ConfigMap", "data", None), ("ConfigMap", "binaryData", {"Corefile": "LjoK"})], "as binaryData"),
        ([("ConfigMap", "data/Corefile", ".:53 {\n  errors\n")], "line 1: the { of this server block is never closed"),
        ([("ConfigMap", "data/Corefile", ".:53 {\n import a b\n}\n")], "line 2: import takes one"),
        ([("ConfigMap", "data/Corefile", ".:53 {\n import\n}\n")], "line 2: this import names n"),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else "-".join(f"{kind}:{path}={new}" for kind, path, new in value)
    ),
)
def test_each_fault_of_a_cluster_is_reported(changes: list[tuple[str, str, Any]], fault: str) -> None:
    found = discover(kubeadm(*changes))
    assert any(re.search(fault, text) for text in faults_of(found)), faults_of(found)
    assert all(one.blame is Blame.CONTENTS for one in found.faults)
    assert found.complete
    choice = choose_method(found)
    assert choice.method is None or found.server is not None
    assert choice.why


def test_an_empty_namespace_is_only_without_a_service() -> None:
    found = discover([])
    assert len(found.faults) == 1
    assert (found.service, found.server, found.node_local) == (None, None, None)


@pytest.mark.parametrize(
    ("args", "mounts", "path"),
    [
        (["-conf=/etc/x/Corefile"], [{"name": "config-volume", "mountPath": "/etc/x"}], "/etc/x/Corefile"),
        (["--conf", "/etc/x/Corefile"], [{"name": "config-volume", "mountPath": "/etc/x/"}], "/etc/x/Corefile"),
        (["-conf", "/x"], [{"name": "config-volume", "mountPath": "/x", "subPath": "Corefile"}], "/x"),
        ([], [{"name": "config-volume", "mountPath": "/Corefile", "subPath": "Corefile"}], "/Corefile"),
        (["-conf", "../etc/c/Corefile"], [{"name": "config-volume", "mountPath": "/etc/c"}], "/etc/c/Corefile"),
    ],
    ids=str,
)
def test_a_corefile_is_found_wherever_it_is_mounted(args: list[str], mounts: list[Any], path: str) -> None:
    objects = kubeadm(("Deployment", f"{CONTAINER}/args", args), ("Deployment", f"{CONTAINER}/volumeMounts", mounts))
    corefile = discover(objects).server.corefile  # type: ignore[union-attr]
    assert corefile is not None
    assert corefile.path == path
    assert corefile.updates is ("subPath" not in mounts[0])


def test_a_corefile_in_a_projected_volume_is_found() -> None:
    item = {"configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}}
    volume = {"name": "config-volume", "projected": {"sources": [{"secret": {"name": "s"}}, item]}}
    corefile = discover(kubeadm(("Deployment", VOLUME, volume))).server.corefile  # type: ignore[union-attr]
    assert corefile is not None
    assert str(corefile.source) == "kube-system/coredns"


@pytest.mark.parametrize(
    ("volume", "described"),
    [
        ({"name": "config-volume", "secret": {"secretName": "s"}}, "/etc/coredns is a Secret"),
        ({"name": "config-volume", "hostPath": {"path": "/etc/coredns"}}, "/etc/coredns is a folder of the node"),
        ({"name": "config-volume", "emptyDir": {}}, "/etc/coredns is an emptyDir"),
    ],
    ids=str,
)
def test_a_corefile_in_no_config_map_is_not_read(volume: dict[str, Any], described: str) -> None:
    found = discover(kubeadm(("Deployment", VOLUME, volume)))
    assert described in faults_of(found)[0]
    assert not any("secrets" in str(request) for request in found.asked)


def test_a_corefile_as_large_as_a_config_map_can_be_is_read() -> None:
    block = ".:53 {\n forward . /etc/resolv.conf\n}\n"
    text = block + "# x\n" * ((1 << 20) // 4)
    found = discover(kubeadm(("ConfigMap", "data/Corefile", text)))
    assert found.faults == ()
    assert found.server is not None
    assert found.server.corefile is not None
    assert len(found.server.corefile.text) > 1 << 20


def second(objects: list[Manifest], name: str, **config: Any) -> None:
    """A copy of the Deployment under another name."""
    copied = pick(manifests("kubeadm"), "Deployment", "coredns")
    copied["metadata"]["name"] = name
    copied["spec"] |= config
    objects.append(copied)


def test_two_workloads_that_read_one_corefile_are_one_server_of_the_older_version() -> None:
    objects = kubeadm()
    second(objects, "coredns-canary")
    objects[-1]["spec"]["template"]["spec"]["containers"][0]["image"] = "coredns/coredns:1.9.4"
    found = discover(objects)
    assert found.faults == ()
    assert found.server is not None
    assert found.server.version == (1, 9, 4)
    objects[-1]["spec"]["template"]["spec"]["containers"][0]["image"] = "coredns/coredns:latest"
    found = discover(objects)
    assert found.server is not None
    assert found.server.version is None


def test_two_workloads_with_corefiles_of_their_own_are_not_chosen_between() -> None:
    objects = kubeadm()
    second(objects, "coredns-b")
    objects[-1]["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] = "coredns-b"
    copied = pick(manifests("kubeadm"), "ConfigMap", "coredns")
    copied["metadata"]["name"] = "coredns-b"
    found = discover([*objects, copied])
    assert "several workloads answer for Service kube-system/kube-dns" in faults_of(found)[0]
    assert "Deployment kube-system/coredns and Deployment kube-system/coredns-b" in faults_of(found)[0]
    assert found.server is None
    assert choose_method(found).method is None


def test_a_workload_that_was_scaled_to_nothing_does_not_count() -> None:
    objects = [*manifests("kubeadm"), pick(manifests("gke"), "Deployment", "kube-dns")]
    objects[-1]["spec"]["replicas"] = 0
    found = discover(objects)
    assert found.faults == ()
    assert str(found.server) == "Deployment kube-system/coredns"
    for one in objects:
        if one["kind"] == "Deployment":
            one["spec"]["replicas"] = 0
    assert "several workloads" in faults_of(discover(objects))[0]


@pytest.mark.parametrize("verb", ["get services", "list deployments", "list daemonsets", "get configmaps"])
def test_what_rbac_does_not_allow_is_named_and_nothing_is_concluded_from_it(verb: str) -> None:
    def denies(request: Request) -> object:
        return Denied("no rule") if str(request).startswith(verb) else None

    found = discover(manifests("kubeadm"), denies=denies)
    assert not found.complete
    assert all(text.startswith(f"not allowed to {verb}") for text in faults_of(found)), faults_of(found)
    assert all("in namespace kube-system" in text for text in faults_of(found))


def test_an_unreadable_object_is_named() -> None:
    found = discover(manifests("kubeadm"), denies=lambda request: Unreadable("cut") if request.name else None)
    assert faults_of(found) == ["the answer to get services kube-dns in namespace kube-system is unreadable: cut"]
    assert not found.complete


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_needed_is_asked_for(name: str) -> None:
    found = discover(manifests(name))
    assert len(found.asked) <= 8
    assert {request.kind.name for request in found.asked if request.verb == "list"} <= {
        "Service",
        "Deployment",
        "DaemonSet",
    }


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_on_the_way_that_the_result_does_not_rest_on(name: str) -> None:
    """A request that RBAC refuses costs a line in the API server's audit log each time."""
    assert set(read(manifests(name))) == set(discover(manifests(name)).asked)


def test_finding_depends_on_the_answers_alone_and_not_on_their_order() -> None:
    answers = read(manifests("rke2-nodelocal"))
    again = find(dict(sorted(answers.items(), key=str)))
    assert find(answers) == again
    assert set(again.asked) == set(answers)


def test_the_nodes_cache_is_kept_apart_from_the_server() -> None:
    found = discover(manifests("gke"))
    assert found.server is not None
    assert found.server.program is Program.KUBE_DNS
    assert found.node_local is not None
    assert found.node_local.server.program is Program.NODE_CACHE
    assert found.asked_by_pods is found.node_local.server


SWAPS = [None, {}, [], "", "x", 0, -1, True, {"x": None}, [None], "/etc/coredns/custom/*.server"]


@st.composite
def damaged(draw: st.DrawFn) -> list[Manifest]:
    """A cluster of the corpus with some fields taken out or written over."""
    objects = manifests(draw(st.sampled_from(NAMES)))
    for _ in range(draw(st.integers(1, 4))):
        place: Any = draw(st.sampled_from(objects))
        for _ in range(draw(st.integers(1, 9))):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and draw(st.integers(0, 4)):
                place = place[key]
                continue
            place[key] = copy.deepcopy(draw(st.sampled_from(SWAPS)))
            break
    return [one for one in objects if isinstance(one.get("metadata"), dict) and "kind" in one]


@settings(max_examples=300)
@given(damaged())
def test_nothing_that_a_cluster_holds_raises(objects: list[Manifest]) -> None:
    found = discover([one for one in objects if isinstance(one["metadata"].get("name"), str)])
    choice = choose_method(found)
    assert choice.why
    assert found.wanted == ()
