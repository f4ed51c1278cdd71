"""The method that fits each distribution, and the reasons against the others."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.stanza import BEGIN, END
from tests.kit.manifest_cluster import NAMES, Manifest, discover, manifests, pick

IMPORT, COREFILE, STUB_DOMAINS, PRINT = Method.IMPORT, Method.COREFILE, Method.STUB_DOMAINS, Method.PRINT
REWRITES = Method.OVERRIDE_REWRITES


def choose(objects: list[Manifest]) -> Choice:
    return choose_method(discover(objects))


def said(choice: Choice) -> str:
    return " / ".join([choice.why, *choice.what_else])


@pytest.mark.parametrize(
    ("name", "method", "target", "form", "needs_zones"),
    [
        ("aks", IMPORT, "switchback.server in ConfigMap kube-system/coredns-custom", None, True),
        ("coredns-chart", PRINT, None, Form.HELM_VALUES, False),
        ("coreweave", IMPORT, "switchback.include in ConfigMap kube-system/node-local-dns-overrides", None, False),
        ("cozystack", REWRITES, "switchback.override in ConfigMap kube-system/coredns-custom", None, False),
        ("doks", IMPORT, "switchback.server in ConfigMap kube-system/coredns-custom", None, True),
        ("eks-addon", PRINT, None, Form.EKS_ADDON, False),
        ("eks-self-managed", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
        ("gardener", IMPORT, "switchback.override in ConfigMap kube-system/coredns-custom", None, False),
        ("gke", STUB_DOMAINS, "stubDomains in ConfigMap kube-system/kube-dns", None, True),
        ("gke-kube-dns", STUB_DOMAINS, "stubDomains in ConfigMap kube-system/kube-dns", None, True),
        ("idpbuilder", IMPORT, "switchback.conf in ConfigMap kube-system/coredns-conf-custom", None, False),
        ("k0s", PRINT, None, Form.K0S_CLUSTER, False),
        ("k3s", IMPORT, "switchback.server in ConfigMap kube-system/coredns-custom", None, True),
        ("k3s-2025", IMPORT, "switchback.override in ConfigMap kube-system/coredns-custom", None, False),
        ("kapsule", IMPORT, "switchback.server in ConfigMap kube-system/coredns-custom", None, True),
        ("kops-forward", PRINT, None, Form.KOPS_CLUSTER, False),
        ("kops-nodelocal", STUB_DOMAINS, "stubDomains in ConfigMap kube-system/kube-dns", None, True),
        ("kubeadm", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
        ("kubeadm-nodelocal", STUB_DOMAINS, "stubDomains in ConfigMap kube-system/kube-dns", None, True),
        ("kubespray", COREFILE, "Corefile in ConfigMap kube-system/nodelocaldns", None, False),
        ("kubespray-coredns", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
        ("microk8s", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
        ("minikube", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
        ("openshift", PRINT, None, Form.OPENSHIFT_DNS, False),
        ("outscale", IMPORT, "switchback.server in ConfigMap kube-system/coredns-custom", None, True),
        ("rke2", PRINT, None, Form.HELM_CHART_CONFIG, False),
        ("rke2-nodelocal", STUB_DOMAINS, "stubDomains in ConfigMap kube-system/kube-dns", None, True),
        ("talos", COREFILE, "Corefile in ConfigMap kube-system/coredns", None, False),
    ],
)
def test_each_distribution_gets_the_method_that_stays(
    name: str, method: Method, target: str | None, form: Form | None, needs_zones: bool
) -> None:
    choice = choose(manifests(name))
    assert choice.method is method
    assert (str(choice.target) if choice.target else None, choice.form) == (target, form)
    assert choice.needs_zones is needs_zones
    assert (choice.hook is not None) is (method in (IMPORT, REWRITES))
    assert choice.domain == ("cluster.local" if method is REWRITES else "")
    assert choice.why


def test_every_cluster_of_the_corpus_is_in_the_table() -> None:
    (mark,) = test_each_distribution_gets_the_method_that_stays.pytestmark  # type: ignore[attr-defined]
    assert [row[0] for row in mark.args[1]] == NAMES


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aks", "zones have to be named: a server block for . is there already"),
        ("aks", "the method corefile could serve every zone, but the addon manager undoes edits"),
        ("kapsule", "the method corefile could serve every zone, and the addon manager creates it if"),
        ("cozystack", "coredns-custom after its forward, where rewrite lines still work; a Flux HelmRelease owns"),
        ("cozystack", "CoreDNS answers at most 500 names with the ClusterIPs of their Services"),
        ("cozystack", "the owner can lift that limit: put the import before the forward, or take"),
        ("eks-addon", "unless the add-on was deleted with --preserve"),
        ("gke", "a stub domain has no fallback"),
        ("k3s", "coredns-custom, which is to be created"),
        (
            "kops-nodelocal",
            "DaemonSet kube-system/node-local-dns at 169.254.20.10, which does not forward public names to it",
        ),
        ("kops-forward", "which forwards . to the cluster's DNS"),
        ("openshift", "does not tell the version of CoreDNS"),
        ("talos", "`talosctl upgrade-k8s` applies the bootstrap manifests again"),
    ],
)
def test_remarks_say_the_limits_of_a_choice(name: str, words: str) -> None:
    assert words in said(choose(manifests(name)))


def test_only_hooks_that_could_have_been_taken_are_talked_about() -> None:
    assert choose(manifests("k3s-2025")).what_else == ()
    assert choose(manifests("kubeadm")).what_else == ()
    assert choose(manifests("k3s-2025")).hook.scope is Scope.ROOT_PLUGINS  # type: ignore[union-attr]


def changed(name: str, kind: str, of: str, **fields: Any) -> list[Manifest]:
    objects = manifests(name)
    pick(objects, kind, of).update(fields)
    return objects


def with_image(name: str, image: str) -> list[Manifest]:
    objects = manifests(name)
    pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return objects


def test_an_immutable_corefile_is_printed() -> None:
    objects = changed("kubeadm", "ConfigMap", "coredns", immutable=True)
    choice = choose(objects)
    assert (choice.method, choice.form, choice.target) == (PRINT, Form.STANZA, None)
    assert "is immutable" in choice.why
    wanted = choose_method(discover(objects), COREFILE)
    assert (wanted.method, wanted.why) == (None, "ConfigMap kube-system/coredns is immutable")


def test_an_immutable_hook_leaves_the_next_best() -> None:
    choice = choose(changed("aks", "ConfigMap", "coredns-custom", immutable=True))
    assert (choice.method, choice.form) == (PRINT, Form.STANZA)
    assert "takes no file of ours: ConfigMap kube-system/coredns-custom is immutable" in said(choice)


def test_stub_domains_that_are_none_are_not_merged_into() -> None:
    for data in ({"stubDomains": "{"}, {"stubDomains": "[]"}, {"upstreamNameservers": '"192.0.2.1"'}):
        choice = choose(changed("gke", "ConfigMap", "kube-dns", data=data))
        assert choice.method is None
        assert "ConfigMap kube-system/kube-dns" in choice.why
    choice = choose(changed("gke", "ConfigMap", "kube-dns", immutable=True))
    assert (choice.method, choice.why) == (None, "ConfigMap kube-system/kube-dns is immutable")
    assert choice.target is None


def test_stub_domains_that_are_empty_are_room_for_ours() -> None:
    for data in (None, {}, {"stubDomains": ""}, {"stubDomains": "{}"}, {"other": "x"}):
        assert choose(changed("gke", "ConfigMap", "kube-dns", data=data)).method is STUB_DOMAINS
    gone = [one for one in manifests("gke") if one["metadata"]["name"] != "kube-dns" or one["kind"] != "ConfigMap"]
    choice = choose(gone)
    assert choice.target is not None
    assert (choice.method, choice.target.source.exists) == (STUB_DOMAINS, False)


def test_a_coredns_that_takes_one_forward_takes_a_block_of_its_own_or_nothing() -> None:
    choice = choose(with_image("kubeadm", "coredns/coredns:1.9.3"))
    assert (choice.method, choice.target) == (None, None)
    assert "takes one forward per server block; upgrade it" in choice.why
    choice = choose(with_image("k3s-2025", "rancher/mirrored-coredns-coredns:1.8.3"))
    assert str(choice.target) == "switchback.server in ConfigMap kube-system/coredns-custom"


def test_an_unknown_version_is_taken_for_one_that_takes_several() -> None:
    choice = choose(with_image("kubeadm", "coredns/coredns:latest"))
    assert choice.method is COREFILE
    assert "1.9.4 or newer is assumed" in said(choice)


def test_a_corefile_without_reload_has_to_be_restarted() -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("    reload\n", "")
    assert "no reload plugin: Deployment kube-system/coredns has to be restarted" in said(choose(objects))


def test_a_corefile_by_sub_path_has_to_be_restarted() -> None:
    objects = manifests("kubeadm")
    container = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "config-volume", "mountPath": "/etc/coredns/Corefile", "subPath": "Corefile"}]
    assert "mounted by subPath, so Deployment kube-system/coredns has to be restarted" in said(choose(objects))


def test_a_nodes_cache_without_stub_domains_is_changed_itself_or_printed() -> None:
    objects = manifests("kops-nodelocal")
    pod = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] != "kube-dns-config"]
    assert (choose(objects).method, choose(objects).form) == (PRINT, Form.KOPS_CLUSTER)
    pick(objects, "ConfigMap", "node-local-dns")["metadata"].update(labels=None, annotations=None)
    choice = choose(objects)
    assert choice.method is COREFILE
    assert str(choice.target) == "Corefile in ConfigMap kube-system/node-local-dns"


def test_the_owner_of_the_workload_counts_where_the_config_map_has_none() -> None:
    objects = manifests("gke")
    pod = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] != "kube-dns-config"]
    pick(objects, "ConfigMap", "node-local-dns")["metadata"].update(labels=None)
    assert choose(objects).method is PRINT
    pick(objects, "DaemonSet", "node-local-dns")["metadata"].update(labels=None)
    assert choose(objects).method is COREFILE


@pytest.mark.parametrize(
    ("name", "wanted", "method", "words"),
    [
        ("k3s", COREFILE, COREFILE, "has the Corefile of Deployment kube-system/coredns, and every start of a k3s"),
        ("k3s", PRINT, PRINT, "k3s owns ConfigMap kube-system/coredns"),
        ("k3s", STUB_DOMAINS, None, "Deployment kube-system/coredns reads no stub domains"),
        ("kubeadm", PRINT, PRINT, "ConfigMap kube-system/coredns has no other owner"),
        ("kubeadm", IMPORT, None, "has no import that would take a file of ours"),
        (
            "cozystack",
            IMPORT,
            None,
            "the import comes after a forward that takes every query; before it the file would fit",
        ),
        ("cozystack", COREFILE, COREFILE, "Flux renders it again"),
        ("cozystack", PRINT, PRINT, "a Flux HelmRelease owns ConfigMap kube-system/coredns"),
        ("k3s", REWRITES, REWRITES, "after its forward, where rewrite lines still work; k3s owns the Corefile"),
        ("k3s-2025", REWRITES, REWRITES, "imports /etc/coredns/custom/*.override from ConfigMap"),
        ("kubeadm", REWRITES, None, "Deployment kube-system/coredns has no import of files in its server block of ."),
        ("gke", REWRITES, None, "no Corefile of DaemonSet kube-system/node-local-dns was found whose block"),
        ("gke-kube-dns", REWRITES, None, "no Corefile of Deployment kube-system/kube-dns was found whose block"),
        ("gke", COREFILE, COREFILE, "ConfigMap kube-system/node-local-dns has the Corefile"),
        ("gke-kube-dns", COREFILE, None, "no Corefile of Deployment kube-system/kube-dns was found"),
        ("kubeadm", STUB_DOMAINS, None, "reads no stub domains"),
        ("gke-kube-dns", PRINT, None, "no Corefile of Deployment kube-system/kube-dns was found"),
        ("eks-addon", COREFILE, COREFILE, "unless the add-on was deleted with --preserve"),
        ("aks", IMPORT, IMPORT, "no other controller writes a key of ours"),
    ],
)
def test_a_method_that_a_person_wants_is_taken_where_it_can_work(
    name: str, wanted: Method, method: Method | None, words: str
) -> None:
    choice = choose_method(discover(manifests(name)), wanted)
    assert words in choice.why
    assert choice.method is method
    assert (choice.target is not None) is (method in (COREFILE, IMPORT, STUB_DOMAINS, REWRITES))
    assert (choice.form is not None) is (method is PRINT)


@pytest.mark.parametrize("wanted", Method)
def test_a_wanted_method_that_is_the_fitting_one_is_the_same_choice(wanted: Method) -> None:
    for name in NAMES:
        fitting = choose_method(discover(manifests(name)))
        if fitting.method is wanted:
            assert choose_method(discover(manifests(name)), wanted) == fitting


def cozystack(old: str, new: str) -> list[Manifest]:
    """The cluster of a tenant with another Corefile."""
    objects = manifests("cozystack")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    assert old in data["Corefile"]
    data["Corefile"] = data["Corefile"].replace(old, new)
    return objects


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cache 30", "autopath @kubernetes\n cache 30", "its plugin autopath (line 14) answers names"),
        ("kubernetes cluster.local", "k8s_external cluster.local", "has no plugin kubernetes"),
        ("pods insecure", "namespaces default", "serves only some Services (namespaces)"),
    ],
)
def test_where_rewrite_lines_do_not_work_the_text_is_printed_and_says_why(old: str, new: str, words: str) -> None:
    choice = choose(cozystack(old, new))
    assert (choice.method, choice.form) == (PRINT, Form.HELM_VALUES)
    late = "rewrite lines in a file for import /etc/coredns/custom/*.override would not work either: "
    assert any(text.startswith(late) and words in text for text in choice.what_else)


def test_an_owner_who_was_given_the_stanza_is_given_it_again() -> None:
    choice = choose(cozystack("    forward .", f"    {BEGIN}\n    forward . 10.96.0.53\n    {END}\n    forward ."))
    assert choice.method is PRINT
    assert "would not work either" not in said(choice)


def test_a_hook_before_the_forward_takes_the_stanza() -> None:
    early = cozystack("    forward .", "    import /etc/coredns/custom/*.override\n    forward .")
    assert choose(early).method is IMPORT


def test_an_immutable_corefile_with_a_late_hook_gets_rewrite_lines() -> None:
    objects = cozystack("errors", "errors")
    pick(objects, "ConfigMap", "coredns")["metadata"] = {"name": "coredns", "namespace": "kube-system"}
    pick(objects, "Deployment", "coredns")["metadata"] = {"name": "coredns", "namespace": "kube-system"}
    assert choose(objects).method is COREFILE
    pick(objects, "ConfigMap", "coredns")["immutable"] = True
    choice = choose(objects)
    assert choice.method is REWRITES
    assert choice.why.endswith("where rewrite lines still work")


def test_where_nothing_is_known_nothing_is_chosen_and_the_faults_say_why() -> None:
    choice = choose([])
    assert (choice.method, choice.target, choice.form) == (None, None, None)
    assert "there is no Service kube-dns" in choice.why
    broken = manifests("kubeadm")
    pick(broken, "ConfigMap", "coredns")["data"]["Corefile"] = ". {"
    assert "line 1" in choose(broken).why
