"""The Service of the cluster's DNS: the named one, the usual one, or one with its label, never a guess."""

from __future__ import annotations

import pytest

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.requests import Denied, Request
from tests.kit.manifest_cluster import discover, faults_of, manifests, pick


def test_a_service_that_was_named_is_the_only_one_looked_at() -> None:
    where = ServiceRef("kube-system", "other", exact=True)
    found = discover(manifests("rke2"), where)
    assert [request.name for request in found.asked] == ["other"]
    assert "there is no Service other" in faults_of(found)[0]
    where = ServiceRef("openshift-dns", "dns-default", exact=True)
    assert discover(manifests("openshift"), where).server is not None


def test_two_services_that_could_be_the_clusters_dns_are_not_chosen_between() -> None:
    objects = manifests("rke2")
    other = pick(manifests("kapsule"), "Service", "coredns")
    found = discover([*objects, other])
    assert "several Services could be the cluster's DNS" in faults_of(found)[0]
    assert "kube-system/rke2-coredns-rke2-coredns, kube-system/coredns" in faults_of(found)[0]
    other["spec"]["selector"] = pick(objects, "Service", "rke2-coredns-rke2-coredns")["spec"]["selector"]
    assert discover([*objects, other]).faults == ()


def test_the_twin_of_the_service_that_the_nodes_cache_asks_is_not_the_clusters_dns() -> None:
    objects = manifests("rke2-nodelocal")
    found = discover(objects)
    assert found.service is not None
    assert found.service.name == "rke2-coredns-rke2-coredns"


def test_other_namespaces_are_looked_at_only_where_this_one_has_none() -> None:
    assert not any(request.namespace == "openshift-dns" for request in discover(manifests("rke2")).asked)
    assert any(request.namespace == "openshift-dns" for request in discover(manifests("openshift")).asked)


@pytest.mark.parametrize("denied", ["get services dns-default", "list services"])
def test_where_others_may_not_be_seen_both_is_said(denied: str) -> None:
    def denies(request: Request) -> object:
        return Denied("no rule") if str(request).startswith(denied) else None

    found = discover([], denies=denies)
    first, second = faults_of(found)
    assert first.startswith(f"not allowed to {denied}")
    assert ("name the Service that pods ask with --dns-service" in first) is (denied == "list services")
    assert second.startswith("there is no Service kube-dns in namespace kube-system")
    assert not found.complete


def test_a_service_without_pods_is_skipped_in_the_search() -> None:
    objects = manifests("kapsule")
    empty = pick(manifests("kapsule"), "Service", "coredns")
    empty["metadata"]["name"] = "a-headless-twin"
    empty["spec"] |= {"clusterIP": "None", "clusterIPs": ["None"]}
    found = discover([empty, *objects])
    assert found.service is not None
    assert found.service.name == "coredns"


def test_both_addresses_of_a_dual_stack_service_are_told() -> None:
    objects = manifests("kubeadm")
    pick(objects, "Service", "kube-dns")["spec"]["clusterIPs"] = ["10.96.0.10", "2001:db8::a"]
    service = discover(objects).service
    assert service is not None
    assert service.addresses == ("10.96.0.10", "2001:db8::a")
    pick(objects, "Service", "kube-dns")["spec"]["clusterIPs"] = None
    service = discover(objects).service
    assert service is not None
    assert service.addresses == ("10.96.0.10",)
