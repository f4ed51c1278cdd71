"""Where rewrite lines of ours would work, and why not elsewhere."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import Server
from dnsproxy.cluster_dns.rewrite_place import RewritePlace, find_rewrite_place
from tests.kit.manifest_cluster import Manifest, discover, manifests, pick


def tenant(corefile: str = "", image: str = "", **custom: str) -> list[Manifest]:
    """The cluster of a cozystack tenant; keys of coredns-custom are written with _ for their dot."""
    objects = manifests("cozystack")
    if corefile:
        pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = corefile
    if image:
        pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]["image"] = image
    if custom:
        data = {key.replace("_", "."): text for key, text in custom.items()}
        pick(objects, "ConfigMap", "coredns-custom")["data"] = data
    return objects


def server(objects: list[Manifest]) -> Server:
    found = discover(objects).asked_by_pods
    assert found is not None
    return found


def place(objects: list[Manifest]) -> RewritePlace | str:
    return find_rewrite_place(server(objects))


LATE = "forward . /etc/resolv.conf\n import /etc/coredns/custom/*.override"


def block(*lines: str) -> str:
    return "\n".join([".:53 {", *(f"  {line}" for line in lines), "}", ""])


@pytest.mark.parametrize(
    ("corefile", "domain"),
    [
        ("", "cluster.local"),
        (block("kubernetes cozy.local cluster.local in-addr.arpa", LATE), "cozy.local"),
        (block("kubernetes in-addr.arpa Cluster.Local. ip6.arpa", LATE), "cluster.local"),
        ("(k) {\n kubernetes k8s.example.org\n}\n" + block("import k", LATE), "k8s.example.org"),
        (block("kubernetes {$ZONE} cluster.local", LATE), "cluster.local"),
    ],
    ids=["as delivered", "two domains", "another spelling", "a snippet", "a variable beside it"],
)
def test_the_domain_is_that_of_the_corefile_which_imports_the_file(corefile: str, domain: str) -> None:
    found = place(tenant(corefile))
    assert isinstance(found, RewritePlace)
    assert found.domain == domain
    assert (found.hook.key("switchback"), str(found.source)) == ("switchback.override", "kube-system/coredns-custom")


def test_a_config_map_that_does_not_exist_is_a_place_too() -> None:
    objects = [one for one in tenant() if one["metadata"]["name"] != "coredns-custom"]
    found = place(objects)
    assert isinstance(found, RewritePlace)
    assert not found.source.exists


def test_a_file_with_a_forward_of_others_is_no_hindrance() -> None:
    assert isinstance(place(tenant(a_override="forward . 192.0.2.1\n")), RewritePlace)


K8S = "kubernetes cluster.local"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(tenant(block(K8S, "forward . 192.0.2.1")), "has no import of files", id="no import"),
        pytest.param(
            tenant(block(K8S, "forward . 192.0.2.1") + "import /etc/coredns/custom/*.server\n"),
            "has no import of files",
            id="an import between the blocks",
        ),
        pytest.param(
            tenant(block(K8S, "forward . 192.0.2.1", "import /etc/coredns/custom/one")),
            "takes no file of ours: it names one file",
            id="an import of one file",
        ),
        pytest.param(
            tenant(block(K8S, "forward . 192.0.2.1", "import /elsewhere/*.override")),
            "takes no file of ours: no ConfigMap is mounted at /elsewhere",
            id="an import without a volume",
        ),
        pytest.param(tenant(block(LATE)), "has no plugin kubernetes", id="without kubernetes"),
        pytest.param(
            tenant(f"cluster.local {{\n {K8S}\n}}\n" + block(LATE)), "has no plugin kubernetes", id="in another block"
        ),
        pytest.param(
            tenant(block("kubernetes", LATE)), "(line 2) names no cluster domain that can be read", id="for the root"
        ),
        pytest.param(tenant(block("kubernetes {$ZONE}", LATE)), "names no cluster domain", id="a variable"),
        pytest.param(tenant(block("kubernetes in-addr.arpa", LATE)), "names no cluster domain", id="a reverse zone"),
        pytest.param(tenant(block(f"{K8S} {{", " labels a=b", "}", LATE)), "some Services (labels)", id="labels"),
        pytest.param(tenant(block(K8S, "autopath @kubernetes", LATE)), "autopath (line 3)", id="autopath"),
        pytest.param(tenant(z_override="autopath @kubernetes\n"), "autopath (line 1)", id="autopath in a file"),
        pytest.param(tenant(image="coredns/coredns:1.9.3"), "CoreDNS 1.9.3 is older than 1.9.4", id="an old CoreDNS"),
        pytest.param(manifests("gke"), "no Corefile of DaemonSet kube-system/node-local-dns", id="node-cache"),
        pytest.param(manifests("gke-kube-dns"), "no Corefile of Deployment kube-system/kube-dns", id="kube-dns"),
        pytest.param(tenant(block(K8S, LATE) * 2), "several server blocks serve .", id="two blocks"),
    ],
)
def test_elsewhere_the_reason_is_given(objects: list[Manifest], why: str) -> None:
    found = place(objects)
    assert isinstance(found, str)
    assert why in found


def test_an_immutable_config_map_takes_no_file() -> None:
    objects = tenant()
    pick(objects, "ConfigMap", "coredns-custom")["immutable"] = True
    found = place(objects)
    assert isinstance(found, str)
    assert "ConfigMap kube-system/coredns-custom is immutable" in found
