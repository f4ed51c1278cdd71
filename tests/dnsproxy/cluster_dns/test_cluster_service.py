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
    assert "kube-system/coredns, kube-system/rke2-coredns-rke2-coredns" in faults_of(found)[0]
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


@pytest.mark.parametrize("name", ["kubespray", "kapsule", "rke2", "rke2-nodelocal", "openshift"])
def test_a_usual_name_takes_no_right_to_list_services(name: str) -> None:
    def denies(request: Request) -> object:
        return Denied("no rule") if str(request).startswith("list services") else None

    found, limited = discover(manifests(name)), discover(manifests(name), denies=denies)
    assert limited.service == found.service is not None
    assert (limited.server, limited.faults, limited.complete) == (found.server, (), True)


def test_a_service_of_another_name_is_found_by_its_label() -> None:
    objects = manifests("coredns-chart")
    found = discover(objects)
    assert found.service is not None
    assert found.service.name == "dns-coredns"
    assert found.faults == ()
    denied = discover(objects, denies=lambda one: Denied("no rule") if str(one).startswith("list services") else None)
    assert denied.service is None
    assert "name the Service that pods ask with --dns-service" in faults_of(denied)[0]


def test_a_usual_name_without_the_label_is_another_program() -> None:
    """Such as a CoreDNS that serves a zone to the world."""
    objects = manifests("coredns-chart")
    other = pick(manifests("kapsule"), "Service", "coredns")
    other["metadata"]["labels"] = {"app": "authoritative"}
    found = discover([other, *objects])
    assert found.service is not None
    assert found.service.name == "dns-coredns"


def test_kube_dns_comes_before_every_other_name() -> None:
    other = pick(manifests("kapsule"), "Service", "coredns")
    found = discover([other, *manifests("kubeadm")])
    assert found.service is not None
    assert found.service.name == "kube-dns"
    assert [request.name for request in found.asked if request.kind.plural == "services"] == ["kube-dns"]


@pytest.mark.parametrize("denied", ["get services coredns", "get services rke2-coredns-rke2-coredns"])
def test_a_usual_name_that_may_not_be_seen_matters_only_where_no_other_is_found(denied: str) -> None:
    def denies(request: Request) -> object:
        return Denied("no rule") if str(request).startswith(denied) else None

    name = "rke2" if denied.endswith("services coredns") else "kubespray"
    found = discover(manifests(name), denies=denies)
    assert found.service is not None
    assert (found.faults, found.complete) == ((), True)
    assert not any(str(request).startswith(denied) for request in found.asked)
    none = discover([], denies=denies)
    assert faults_of(none)[0].startswith(f"not allowed to {denied}")
    assert not none.complete


def test_where_nothing_but_kube_dns_may_be_seen_one_remedy_is_named() -> None:
    """The rights of an installation from before: each refusal by itself would say no more."""
    found = discover(
        manifests("kubespray"), denies=lambda one: None if one.name == "kube-dns" else Denied("no rule")
    )  # fmt: skip
    refused, absent = faults_of(found)
    assert refused.startswith("not allowed to list services in namespace kube-system; there is no Service kube-dns")
    assert "--dns-service, such as kube-system/coredns" in refused
    assert absent.startswith("there is no Service kube-dns")


@pytest.mark.parametrize("change", ["another selector", "hidden", "absent"])
def test_openshifts_daemon_set_is_read_by_name_and_else_listed(change: str) -> None:
    def denies(request: Request) -> object:
        return Denied("no rule") if change == "hidden" and str(request).startswith("get daemonsets") else None

    objects = manifests("openshift")
    one = pick(objects, "DaemonSet", "dns-default")
    if change == "another selector":
        copied = pick(manifests("openshift"), "DaemonSet", "dns-default")
        copied["spec"]["template"]["metadata"]["labels"] = {"a": "b"}
        one["metadata"]["name"] = "dns"
        objects.append(copied)
    elif change == "absent":
        one["metadata"]["name"] = "dns"
    found = discover(objects, denies=denies)
    assert (found.faults, found.complete) == ((), True)
    assert found.server is not None
    assert found.server.name == one["metadata"]["name"]


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
