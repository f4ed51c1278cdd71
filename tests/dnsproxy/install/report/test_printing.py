"""The text for an owner has the effect of an edit, after the owner has rendered its Corefile from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Method, choose_method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.corefile.markers import find_region, is_marked
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import plan_install
from dnsproxy.install.change.config_map import Wanted
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.report.printing import Printed, print_for
from tests.dnsproxy.corefile.shapes import address
from tests.dnsproxy.install.report.rendered import RENDERERS, meaning
from tests.kit.manifest_cluster import NAMES, discover, manifests, pick

ZONE = "example.org"
WANTED = Wanted((address(),))
WANTED_ZONE = Wanted((address(),), (ZONE,))


def printed_for(name: str, wanted: Wanted = WANTED_ZONE, *, change: Any = None) -> Printed:
    objects = manifests(name)
    if change is not None:
        change(objects)
    found = discover(objects)
    return print_for(found, choose_method(found, Method.PRINT), wanted)


def corefile_of(found: Found) -> str:
    server = found.asked_by_pods
    assert server is not None
    assert server.corefile is not None
    return server.corefile.text


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_printed_says_where_it_goes_and_ends_in_one_line_end(name: str) -> None:
    printed = printed_for(name)
    assert printed.text.endswith("\n")
    assert not printed.text.endswith("\n\n")
    assert printed.where
    assert not printed.where.endswith(".")
    assert "10.96.0.53" in printed.text
    assert len(set(printed.notes)) == len(printed.notes)


@pytest.mark.parametrize("name", [name for name in RENDERERS if name not in ("rke2", "openshift")])
@pytest.mark.parametrize("wanted", [WANTED, WANTED_ZONE], ids=["every name", "a zone"])
def test_the_owner_ends_up_with_the_corefile_that_an_edit_of_ours_would_make(name: str, wanted: Wanted) -> None:
    found = discover(manifests(name))
    rendered = parse_corefile(RENDERERS[name](printed_for(name, wanted), corefile_of(found)))
    server = found.asked_by_pods
    assert server is not None
    edited = plan_install(
        corefile_of(found),
        addresses=wanted.addresses,
        zones=wanted.zones or (".",),
        coredns_version=server.version,
    )
    assert meaning(rendered) == meaning(parse_corefile(edited.new))
    assert find_region(rendered) is not None, "or status would not know it"


def domain_twice(objects: Any) -> None:
    """What RKE2's chart renders from values like ours: it writes the cluster's domain in front of the parameters."""
    data = pick(objects, "ConfigMap", "rke2-coredns-rke2-coredns")["data"]
    data["Corefile"] = data["Corefile"].replace(" cluster.local ", " cluster.local  cluster.local ")
    assert data["Corefile"].count("cluster.local") == 2


@pytest.mark.parametrize("change", [None, domain_twice], ids=["as it comes", "printed before"])
def test_rke2_gets_its_chart_values_in_a_helm_chart_config_with_the_cluster_domain_once(change: Any) -> None:
    printed = printed_for("rke2", WANTED, change=change)
    config = yaml.safe_load(printed.text)
    assert (config["apiVersion"], config["kind"]) == ("helm.cattle.io/v1", "HelmChartConfig")
    assert config["metadata"] == {"name": "rke2-coredns", "namespace": "kube-system"}
    (server,) = yaml.safe_load(config["spec"]["valuesContent"])["servers"]
    plugins = {plugin["name"]: plugin for plugin in server["plugins"]}
    assert plugins["kubernetes"]["parameters"] == "cluster.local in-addr.arpa ip6.arpa"
    assert is_marked(RENDERERS["rke2"](printed, ""))
    assert "kubectl apply -f FILE" in printed.apply


def test_openshift_gets_a_server_for_the_zones_with_what_is_known_of_the_upstreams_behind_us() -> None:
    spec = yaml.safe_load(printed_for("openshift").text)["spec"]
    plugin = {"policy": "Sequential", "upstreams": ["10.96.0.53"]}
    assert spec == {"servers": [{"name": "switchback", "zones": [ZONE], "forwardPlugin": plugin}]}
    assert any("no second upstream" in note for note in printed_for("openshift").notes)

    def name_upstreams(objects: Any) -> None:
        data = pick(objects, "ConfigMap", "dns-default")["data"]
        data["Corefile"] = data["Corefile"].replace("/etc/resolv.conf", "192.0.2.53 [2001:db8::53]:5353")

    printed = printed_for("openshift", change=name_upstreams)
    upstreams = yaml.safe_load(printed.text)["spec"]["servers"][0]["forwardPlugin"]["upstreams"]
    assert upstreams == ["10.96.0.53", "192.0.2.53", "[2001:db8::53]:5353"]
    assert not any("no second upstream" in note for note in printed.notes)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        pytest.param("aks", "switchback.server", id="AKS"),
        pytest.param("k3s", "switchback.server", id="k3s"),
        pytest.param("doks", "switchback.server", id="DigitalOcean"),
        pytest.param("gke", "stubDomains", id="GKE"),
        pytest.param("kops-nodelocal", "stubDomains", id="kops with node-local-dns"),
    ],
)
def test_where_a_key_of_our_own_would_stay_that_is_printed_as_a_config_map(name: str, key: str) -> None:
    found = discover(manifests(name))
    printed = printed_for(name)
    (change,) = plan_apply(found, choose_method(found), WANTED_ZONE).changes
    manifest = yaml.safe_load(printed.text)
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "ConfigMap")
    assert manifest["metadata"]["name"] == change.source.name
    assert manifest["data"] == {entry.name: entry.new for entry in change.data}
    assert list(manifest["data"]) == [key]
    assert printed.apply[0].startswith("kubectl apply --server-side --field-manager=switchback")


def test_a_corefile_with_windows_line_ends_reaches_eks_octet_by_octet() -> None:
    def write_crlf(objects: Any) -> None:
        data = pick(objects, "ConfigMap", "coredns")["data"]
        data["Corefile"] = data["Corefile"].replace("\n", "\r\n")

    printed = printed_for("eks-addon", WANTED, change=write_crlf)
    corefile = json.loads(printed.text)["corefile"]
    assert "\r\n" in corefile
    assert "\n" not in corefile.replace("\r\n", "")


REFUSED = [
    pytest.param("openshift", WANTED, "zones have to be named", id="every name on OpenShift"),
    pytest.param("openshift", Wanted((address(),), ("corp.example.net",)), "served by", id="a zone that is served"),
    pytest.param("openshift", Wanted((address(),), ("cluster.local",)), "cluster's own", id="the cluster's zone"),
    pytest.param("aks", WANTED, "zones have to be named", id="every name on AKS"),
    pytest.param("gke", WANTED, "zones have to be named", id="every name on GKE"),
    pytest.param("kubeadm", Wanted((address("10.96.0.10"),)), "would ask itself", id="the cluster's DNS itself"),
]


@pytest.mark.parametrize(("name", "wanted", "reason"), REFUSED)
def test_what_would_not_work_is_not_printed(name: str, wanted: Wanted, reason: str) -> None:
    with pytest.raises(ChangeRefused, match=reason):
        printed_for(name, wanted)


def test_where_nothing_serves_dns_nothing_is_printed() -> None:
    found = discover([])
    with pytest.raises(ChangeRefused):
        print_for(found, choose_method(found, Method.PRINT), WANTED)
