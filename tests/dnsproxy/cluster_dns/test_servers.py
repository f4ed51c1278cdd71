"""From a workload to its DNS program and configuration."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from dnsproxy.cluster_dns.found import Server
from dnsproxy.cluster_dns.image import Program
from dnsproxy.cluster_dns.kube_dns import Zones, parse_value
from dnsproxy.cluster_dns.owner import Habit
from dnsproxy.cluster_dns.servers import labels_of, pod_of, pods_of
from sidecar.kubernetes.structs.workload import PodSpec, Workload
from tests.kit.manifest_cluster import Manifest, discover, faults_of, manifests, pick


def server_of(objects: list[Manifest]) -> Server:
    server = discover(objects).server
    assert server is not None
    return server


def workload(**fields: Any) -> Workload:
    return msgspec.convert({"metadata": {"name": "coredns"}, **fields}, Workload)


@pytest.mark.parametrize(
    ("fields", "pods"),
    [
        ({}, (0, 1)),
        ({"spec": {"replicas": 3}}, (0, 3)),
        ({"spec": {"replicas": 0}, "status": {}}, (0, 0)),
        ({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}, (1, 2)),
        ({"spec": {}, "status": {"desiredNumberScheduled": 5, "numberReady": 4}}, (4, 5)),
        ({"status": {"desiredNumberScheduled": 0}}, (0, 0)),
        ({"spec": None, "status": None}, (0, 1)),
    ],
    ids=str,
)
def test_pods_are_counted_for_both_kinds(fields: dict[str, Any], pods: tuple[int, int]) -> None:
    assert pods_of(workload(**fields)) == pods


def test_a_workload_that_says_nothing_has_no_pods_and_no_labels() -> None:
    for fields in ({}, {"spec": None}, {"spec": {"template": None}}, {"spec": {"template": {"spec": None}}}):
        assert pod_of(workload(**fields)) == PodSpec()
        assert labels_of(workload(**fields)) == {}


def test_the_container_that_answers_is_found_among_others() -> None:
    objects = manifests("kubeadm")
    containers = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "proxy", "image": "example.org/kube-rbac-proxy:1.0.0"})
    server = server_of(objects)
    assert (server.container, server.program, server.version) == ("coredns", Program.COREDNS, (1, 12, 1))


def test_a_program_is_known_by_what_is_started_where_the_image_has_no_name() -> None:
    server = server_of(manifests("openshift"))
    assert (server.container, server.program, server.version) == ("dns", Program.COREDNS, None)


def test_the_owner_is_the_config_maps_own_before_the_workloads() -> None:
    objects = manifests("kubeadm")
    pick(objects, "Deployment", "coredns")["metadata"]["labels"] = {"doks.digitalocean.com/managed": "true"}
    corefile = server_of(objects).corefile
    assert corefile is not None
    assert corefile.owner.name == "kubeadm"
    pick(objects, "ConfigMap", "coredns")["metadata"]["managedFields"] = [{"manager": "kubectl-edit"}]
    corefile = server_of(objects).corefile
    assert corefile is not None
    assert corefile.owner.name == "DigitalOcean"
    pick(objects, "Deployment", "coredns")["metadata"] |= {"labels": {}, "managedFields": None}
    corefile = server_of(objects).corefile
    assert corefile is not None
    assert (corefile.owner.name, corefile.owner.habit) == ("kubectl-edit, the last writer", Habit.UNKNOWN)


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"stubDomains": "{"}, "stubDomains"),
        ({"stubDomains": "[]"}, "stubDomains"),
        ({"stubDomains": '{"a": "192.0.2.1"}'}, "stubDomains"),
        ({"stubDomains": '{"a": [1]}'}, "stubDomains"),
        ({"stubDomains": "[" * 100_000}, "stubDomains"),
        ({"upstreamNameservers": "{}"}, "upstreamNameservers"),
        ({"upstreamNameservers": "192.0.2.1"}, "upstreamNameservers"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_stub_domains_of_another_shape_are_a_fault(data: dict[str, str], key: str) -> None:
    objects = manifests("gke-kube-dns")
    pick(objects, "ConfigMap", "kube-dns")["data"] = data
    (fault,) = faults_of(discover(objects))
    assert fault.startswith(f"{key} in ConfigMap kube-system/kube-dns is not valid for kube-dns: ")
    stub = server_of(objects).stub_domains
    assert stub is not None
    assert (stub.readable, stub.zones, stub.upstreams) == (False, {}, ())


def test_of_two_projected_config_maps_with_stub_domains_the_last_counts() -> None:
    objects = manifests("gke-kube-dns")
    later = {"kind": "ConfigMap", "metadata": {"name": "later", "namespace": "kube-system"}}
    pick(objects, "ConfigMap", "kube-dns")["data"] = {"stubDomains": '{"example.org": ["192.0.2.1"]}'}
    sources = [{"configMap": {"name": "kube-dns"}}, {"configMap": {"name": "later", "optional": True}}]
    volumes = [{"name": "kube-dns-config", "projected": {"sources": sources}}]
    pick(objects, "Deployment", "kube-dns")["spec"]["template"]["spec"]["volumes"] = volumes
    seen = []
    for data in ({}, {"stubDomains": '{"example.net": ["192.0.2.2"]}'}):
        stub = server_of([*objects, {**later, "data": data}]).stub_domains
        assert stub is not None
        seen.append((str(stub.source), list(stub.zones)))
    assert seen == [("kube-system/kube-dns", ["example.org"]), ("kube-system/later", ["example.net"])]


def test_a_kube_dns_without_a_config_map_reads_no_stub_domains() -> None:
    objects = manifests("gke-kube-dns")
    pick(objects, "Deployment", "kube-dns")["spec"]["template"]["spec"]["volumes"] = [{"name": "other"}]
    assert server_of(objects).stub_domains is None
    pick(objects, "Deployment", "kube-dns")["spec"]["template"]["spec"]["volumes"] = [
        {"name": "kube-dns-config", "emptyDir": {}}
    ]
    assert server_of(objects).stub_domains is None


def test_a_node_cache_whose_corefile_is_mounted_reads_it_and_no_stub_domains() -> None:
    objects = manifests("kubespray")
    cache = discover(objects).node_local
    assert cache is not None
    assert cache.server.corefile is not None
    assert (str(cache.server.corefile.source), cache.server.stub_domains) == ("kube-system/nodelocaldns", None)
    # With its default, it writes the file that CoreDNS reads from its template.
    container = pick(objects, "DaemonSet", "nodelocaldns")["spec"]["template"]["spec"]["containers"][0]
    container["args"][3] = "/etc/Corefile"
    (fault,) = faults_of(discover(objects))
    assert "reads /etc/coredns/Corefile.base, which no ConfigMap has" in fault


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"example.org":\n  ["192.0.2.1",\n}', "invalid character at line 3, column 1"),
        ("{\u201cexample.org\u201d: []}", 'at line 1, column 2; it has typographic quotes, where JSON needs "'),
        ('{"\u00fc": [1]}', "Expected `str`, got `int`"),
        ('{"a": [', "truncated"),
    ],
)
def test_an_invalid_value_is_told_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_value(text, Zones)


def test_a_long_image_is_not_kept_whole() -> None:
    objects = manifests("kubeadm")
    container = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"{'x' * 200_000}/coredns:v1.12.1"
    server = server_of(objects)
    assert (server.program, server.version, len(server.image) < 600) == (Program.COREDNS, (1, 12, 1), True)
