"""Each distribution without a flag: its DNS Service, the method, the ConfigMap that is written, and the rights.

The shapes are those of tests/kit/clusters; the rights are compared with those of the installation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pytest

from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.original_upstreams import find_original
from dnsproxy.cluster_dns.requests import CONFIG_MAP, Denied, Request
from dnsproxy.cluster_dns.upstream_config import read_routes
from dnsproxy.corefile.upstream_routes import differences, format_routes, usable_routes
from dnsproxy.install.report.rights import Grant, grants_of, watch_grants_of
from tests.kit.laws import ROOT
from tests.kit.manifest_cluster import NAMES, answer, discover, manifests
from tests.kit.manifest_edits import plan
from tests.kit.one_manifest import DNS, OPERATE, SERVE, UPSTREAM_CONFIG_MAPS, UPSTREAM_IMPORTS, is_granted

RKE2: Final = "rke2-coredns-rke2-coredns"
OPENSHIFT: Final = "openshift-dns/dns-default"
NAMED: Final = "kube-dns"
OTHERS: Final = f"kube-dns coredns {RKE2}"
"""The Services that are looked at where there is no kube-dns."""
IMPORT, COREFILE, STUB, REWRITES, PRINT = "import", "corefile", "stub-domains", "override-rewrites", "print"

ROWS: Final = [
    # name, Service, method, ConfigMap written, its verbs, Services read, ConfigMaps read
    ("aks", "kube-dns", IMPORT, "coredns-custom", "patch", NAMED, "coredns coredns-custom"),
    ("coredns-chart", "dns-coredns", PRINT, "", "", f"{OTHERS} {OPENSHIFT}", "dns-coredns"),
    ("coreweave", "kube-dns", IMPORT, "node-local-dns-overrides", "patch", NAMED, "coredns node-local-dns "
     "node-local-dns-overrides"),
    ("cozystack", "kube-dns", REWRITES, "coredns-custom", "patch", NAMED, "coredns coredns-custom"),
    ("doks", "kube-dns", IMPORT, "coredns-custom", "create delete patch", NAMED, "coredns coredns-custom"),
    ("eks-addon", "kube-dns", PRINT, "", "", NAMED, "coredns"),
    ("eks-self-managed", "kube-dns", COREFILE, "coredns", "patch", NAMED, "coredns"),
    ("gardener", "kube-dns", IMPORT, "coredns-custom", "patch", NAMED, "coredns coredns-custom"),
    ("gke", "kube-dns", STUB, "kube-dns", "patch", NAMED, "kube-dns node-local-dns"),
    ("gke-kube-dns", "kube-dns", STUB, "kube-dns", "patch", NAMED, "kube-dns"),
    ("idpbuilder", "kube-dns", IMPORT, "coredns-conf-custom", "patch", NAMED, "coredns coredns-conf-custom "
     "coredns-conf-default"),
    ("k0s", "kube-dns", PRINT, "", "", NAMED, "coredns"),
    ("k3s", "kube-dns", IMPORT, "coredns-custom", "create delete patch", NAMED, "coredns coredns-custom"),
    ("k3s-2025", "kube-dns", IMPORT, "coredns-custom", "patch", NAMED, "coredns coredns-custom"),
    ("kapsule", "coredns", IMPORT, "coredns-custom", "patch", OTHERS, "coredns coredns-custom"),
    ("kops-forward", "kube-dns", PRINT, "", "", f"{NAMED} kube-dns-upstream", "coredns kube-dns node-local-dns"),
    ("kops-nodelocal", "kube-dns", STUB, "kube-dns", "create delete patch", NAMED, "coredns kube-dns node-local-dns"),
    ("kubeadm", "kube-dns", COREFILE, "coredns", "patch", NAMED, "coredns"),
    ("kubeadm-nodelocal", "kube-dns", STUB, "kube-dns", "create delete patch", NAMED, "coredns kube-dns "
     "node-local-dns"),
    ("kubespray", "coredns", COREFILE, "nodelocaldns", "patch", OTHERS, "coredns nodelocaldns"),
    ("kubespray-coredns", "coredns", COREFILE, "coredns", "patch", OTHERS, "coredns"),
    ("microk8s", "kube-dns", COREFILE, "coredns", "patch", NAMED, "coredns"),
    ("minikube", "kube-dns", COREFILE, "coredns", "patch", NAMED, "coredns"),
    ("openshift", OPENSHIFT, PRINT, "", "", f"{OTHERS} {OPENSHIFT}", OPENSHIFT),
    ("outscale", "coredns", IMPORT, "coredns-custom", "create delete patch", OTHERS, "coredns coredns-custom"),
    ("rke2", RKE2, PRINT, "", "", OTHERS, RKE2),
    ("rke2-nodelocal", RKE2, STUB, "kube-dns", "create delete patch", OTHERS, f"kube-dns node-local-dns {RKE2}"),
    ("talos", "kube-dns", COREFILE, "coredns", "patch", NAMED, "coredns"),
]  # fmt: skip

BEYOND: Final = {
    "coredns-chart": {"configmaps dns-coredns"},
    "coreweave": {"configmaps node-local-dns-overrides"},
    "idpbuilder": {"configmaps coredns-conf-custom", "configmaps coredns-conf-default"},
}
"""What the one manifest does not grant, by distribution; these need a Role of their own."""

STEERING: Final = {
    *(("configmaps", name) for name in ("kube-proxy", "cilium-config", "antrea-config")),
    ("felixconfigurations", "default"),
    ("leases", "switchback-operate"),
}
"""Names in the installation's rights that have nothing to do with the cluster's DNS."""

ON_THE_PAGE: Final = {
    "kubeadm": "kubeadm, kind, Cluster API",
    "talos": "Talos, cozystack's host",
    "microk8s": "MicroK8s",
    "minikube": "minikube",
    "eks-self-managed": "EKS, self-managed CoreDNS",
    "kubespray": "kubespray",
    "kubespray-coredns": "kubespray without its cache",
    "k3s": "k3s, k3d",
    "k3s-2025": "k3s, k3d",
    "aks": "AKS",
    "doks": "DigitalOcean",
    "kapsule": "Kapsule",
    "outscale": "Outscale",
    "gardener": "Gardener without NodeLocalDNS",
    "coreweave": "CoreWeave",
    "idpbuilder": "idpbuilder",
    "gke": "GKE with kube-dns",
    "gke-kube-dns": "GKE with kube-dns",
    "kubeadm-nodelocal": "kubeadm with node-local-dns",
    "rke2-nodelocal": "RKE2 with node-local-dns",
    "kops-nodelocal": "kops with node-local-dns",
    "rke2": "RKE2",
    "openshift": "OpenShift",
    "eks-addon": "EKS add-on",
    "kops-forward": "kops whose cache forwards to CoreDNS",
    "k0s": "k0s",
    "cozystack": "cozystack's tenants",
    "coredns-chart": "the coredns chart",
}
"""The names of the clusters in the guide."""


def unlisted(request: Request) -> object:
    """An API server that lets only objects be read that a manifest names, and lists workloads in kube-system."""
    if request.kind.plural == "services" and request.verb == "list":
        return Denied("no rule")
    return Denied("no rule") if request.namespace == "openshift-dns" and request.verb == "list" else None


def chosen(name: str) -> Choice:
    return choose_method(discover(manifests(name)))


def grants(name: str) -> Iterator[Grant]:
    """The rights to install and uninstall, and to stay."""
    found = discover(manifests(name))
    changes = plan(manifests(name)).changes if chosen(name).method is not Method.PRINT else ()
    yield from grants_of(found.asked, changes)
    yield from watch_grants_of(found.asked, changes)


def places(requests: Iterable[Request], plural: str) -> set[str]:
    """The objects of one kind that are read by name; the namespace is kube-system unless it is given."""
    read = [one for one in requests if one.kind.plural == plural and one.name]
    return {(one.name or "") if one.namespace == DNS else f"{one.namespace}/{one.name}" for one in read}


def full(name: str) -> str:
    return name if "/" in name else f"{DNS}/{name}"


def test_every_recorded_cluster_has_a_row() -> None:
    assert [row[0] for row in ROWS] == NAMES


def test_the_guide_has_the_same_table() -> None:
    page = (ROOT / "docs" / "pages" / "install.md").read_text(encoding="utf-8")
    table = page.partition("| cluster | DNS Service | method | ConfigMap |\n")[2].partition("\n\n")[0]
    shown = [tuple(cell.strip().strip("`") for cell in line.split("|")[1:-1]) for line in table.splitlines()[1:]]
    wanted = {
        (ON_THE_PAGE[name], "by its label" if name == "coredns-chart" else service, method, written)
        for name, service, method, written, *_ in ROWS
    }
    assert set(shown) == wanted
    assert len(shown) == len(wanted)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_without_a_flag_it_finds_the_service_the_method_and_the_config_map(row: tuple[str, ...]) -> None:
    name, service, method, written, _, services, config_maps = row
    found, choice = discover(manifests(name)), chosen(name)
    assert found.faults == ()
    assert found.service is not None
    assert f"{found.service.namespace}/{found.service.name}" == full(service)
    assert choice.method is not None
    assert choice.method.value == method
    assert (str(choice.target.source) if choice.target else "") == (full(written) if written else "")
    assert places(found.asked, "services") == set(services.split())
    assert places(found.asked, "configmaps") == set(config_maps.split())


@pytest.mark.parametrize("row", [row for row in ROWS if row[3]], ids=lambda row: row[0])
def test_it_writes_that_config_map_alone(row: tuple[str, ...]) -> None:
    name, *_, verbs, _, _ = row
    written = [one for one in grants(name) if one.verb in {"patch", "create", "delete"} and one.plural == "configmaps"]
    assert {full(row[3])} == {f"{one.namespace}/{one.name}" for one in written}
    assert {one.verb for one in written} == set(verbs.split())


@pytest.mark.parametrize("name", NAMES)
def test_the_one_manifest_grants_it_and_the_rest_is_named(name: str) -> None:
    missing = [one for one in grants(name) if not is_granted(one, OPERATE)]
    assert {f"{one.plural} {one.name or ''}".strip() for one in missing} == BEYOND.get(name, set())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BEYOND])
def test_where_services_cannot_be_listed_the_result_is_the_same(name: str) -> None:
    found, limited = discover(manifests(name)), discover(manifests(name), denies=unlisted)
    assert (limited.service, limited.server, limited.node_local) == (found.service, found.server, found.node_local)
    assert limited.faults == ()
    assert limited.complete
    assert limited.asked == found.asked


def test_no_name_in_the_one_manifest_is_superfluous() -> None:
    """Each is used by a recorded cluster; dnsproxy's own Service by every one."""
    used = {(one.plural, one.name) for name in NAMES for one in grants(name)} | {("services", "dnsproxy")}
    named = {
        (plural, name)
        for role in OPERATE
        for rule in role["rules"]
        for plural in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert named - STEERING <= used
    assert named >= STEERING


@pytest.mark.parametrize("name", [name for name in NAMES if name != "coredns-chart"])
def test_serve_forwards_where_its_dns_did_with_the_same_list_of_config_maps(name: str) -> None:
    objects = manifests(name)
    for text in UPSTREAM_CONFIG_MAPS:
        ref = ObjectRef(*text.split("/"))
        there = answer(Request(CONFIG_MAP, ref.namespace, ref.name), objects)
        if there is not None:
            break
    else:
        pytest.fail("none of the ConfigMaps is there")
    original = find_original(discover(objects))
    assert original.fault == ""
    told = format_routes(usable_routes(read_routes(ref, there)))
    assert list(differences((".",), original.routes, told)) == []


def test_serve_may_read_these_config_maps_and_no_other() -> None:
    wanted = {tuple(text.split("/")) for text in (*UPSTREAM_CONFIG_MAPS, *UPSTREAM_IMPORTS)}
    for namespace, name in wanted:
        for verb in ("list", "watch"):
            assert is_granted(Grant(namespace, "", "configmaps", name, verb), SERVE)
    named = {name for role in SERVE for rule in role["rules"] for name in rule.get("resourceNames", ())}
    assert named == {name for _, name in wanted}
    verbs = {verb for role in SERVE for rule in role["rules"] for verb in rule["verbs"]}
    assert verbs == {"list", "watch"}
