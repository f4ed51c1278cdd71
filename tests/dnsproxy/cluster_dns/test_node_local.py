from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import NodeLocal
from tests.kit.manifest_cluster import Manifest, discover, faults_of, manifests, pick


def cache(objects: list[Manifest]) -> NodeLocal:
    found = discover(objects).node_local
    assert found is not None
    return found


def with_upstream(upstream: str) -> list[Manifest]:
    objects = manifests("kops-nodelocal")
    data = pick(objects, "ConfigMap", "node-local-dns")["data"]
    data["Corefile"] = data["Corefile"].replace("__PILLAR__UPSTREAM__SERVERS__", upstream)
    return objects


@pytest.mark.parametrize(
    ("upstream", "passes_on"),
    [
        ("__PILLAR__UPSTREAM__SERVERS__", False),
        ("/etc/resolv.conf", False),
        ("192.0.2.53", False),
        ("__PILLAR__CLUSTER__DNS__", True),
        ("100.64.0.10", True),
        ("100.64.0.10:53", True),
        ("100.64.71.9", True),
        ("100.64.71.9 100.64.0.10", True),
        ("100.64.71.9 192.0.2.53", False),
        ("100.64.71.9:5353", False),
        ("tls://100.64.71.9", False),
        ("{$UPSTREAM}", False),
    ],
)
def test_whom_the_cache_asks_for_public_names_is_read(upstream: str, passes_on: bool) -> None:
    assert cache(with_upstream(upstream)).passes_on is passes_on


def test_a_cache_whose_corefile_is_unknown_passes_nothing_on() -> None:
    objects = manifests("kops-forward")
    pick(objects, "ConfigMap", "node-local-dns")["data"]["Corefile"] = "x {"
    assert not cache(objects).passes_on
    pick(objects, "ConfigMap", "node-local-dns")["data"]["Corefile"] = "x.example.org {\n}\n"
    assert not cache(objects).passes_on


def test_its_own_address_comes_before_the_services() -> None:
    objects = manifests("gke")
    args = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]["containers"][0]["args"]
    args[1] = "10.20.0.10,169.254.20.10"
    assert cache(objects).addresses == ("169.254.20.10", "10.20.0.10")


def test_where_no_flag_says_it_the_blocks_do() -> None:
    assert cache(manifests("coreweave")).addresses == ("169.254.20.10",)
    objects = manifests("kops-nodelocal")
    container = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]["containers"][0]
    container["args"] = ["-localip", "__PILLAR__LOCAL__DNS__,__PILLAR__DNS__SERVER__", "-conf", "/etc/Corefile"]
    assert cache(objects).addresses == ()
    container["args"] = ["-conf", "/etc/Corefile"]
    assert cache(objects).addresses == ("169.254.20.10",)


def test_a_cache_that_a_shell_starts_is_found_but_not_what_it_reads() -> None:
    objects = with_upstream("192.0.2.53")
    container = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]["containers"][0]
    container |= {"command": ["/bin/sh", "-c"], "args": ["exec /node-cache -localip 169.254.20.10"]}
    found = discover(objects)
    assert found.node_local is not None
    assert (found.node_local.addresses, found.node_local.passes_on) == ((), False)
    assert all("starts a shell" in text for text in faults_of(found))


@pytest.mark.parametrize("label", ["node-local-dns", "nodelocaldns"])
def test_a_cache_is_known_by_its_label_too(label: str) -> None:
    objects = manifests("coreweave")
    pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["metadata"]["labels"] = {"k8s-app": label}
    assert cache(objects).server.name == "node-local-dns"


def test_a_cache_that_runs_something_else_is_a_fault() -> None:
    objects = manifests("coreweave")
    container = pick(objects, "DaemonSet", "node-local-dns")["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "example.org/unbound:1.20.0"
    found = discover(objects)
    assert found.node_local is None
    assert "its images are example.org/unbound:1.20.0" in faults_of(found)[0]


def test_of_several_caches_one_is_looked_at_and_that_is_said() -> None:
    objects = manifests("gke")
    other = pick(manifests("gke"), "DaemonSet", "node-local-dns")
    other["metadata"]["name"] = "node-local-dns-second"
    found = discover([*objects, other])
    assert found.node_local is not None
    assert "only node-local-dns was looked at" in faults_of(found)[0]


def test_the_upstream_service_is_read_only_where_an_address_could_be_its_own() -> None:
    assert not any(request.name == "kube-dns-upstream" for request in discover(with_upstream("/etc/resolv.conf")).asked)
    assert any(request.name == "kube-dns-upstream" for request in discover(with_upstream("192.0.2.53")).asked)


def test_stub_domains_come_from_the_config_map_that_is_mounted() -> None:
    stub = cache(manifests("gke")).server.stub_domains
    assert stub is not None
    assert (str(stub.source), stub.zones, stub.upstreams) == (
        "kube-system/kube-dns",
        {"corp.example.net": ("198.51.100.53",)},
        ("192.0.2.53",),
    )
    none = cache(manifests("kops-nodelocal")).server.stub_domains
    assert none is not None
    assert (none.source.exists, none.source.optional, none.zones, none.readable) == (False, True, {}, True)
