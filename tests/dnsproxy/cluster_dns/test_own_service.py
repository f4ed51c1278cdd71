"""dnsproxy's own Service: its addresses, its ready pods, and forwarding loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn, find_own
from dnsproxy.cluster_dns.refusal import ChangeRefused, check_ready, notes_on_readiness
from dnsproxy.cluster_dns.requests import Answer, Denied, Request
from tests.kit.manifest_api import FakeApi
from tests.kit.manifest_cluster import Denies, Manifest

REF = ObjectRef("switchback", "dnsproxy")
CLUSTER_DNS = ("10.96.0.10", "169.254.20.10", "fd00::a")


def service(**spec: Any) -> Manifest:
    ports = [{"name": "dns-tcp", "port": 53, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    full = {"clusterIP": "10.96.0.53", "clusterIPs": ["10.96.0.53", "fd00::53"], "ports": ports, **spec}
    return {
        "kind": "Service",
        "metadata": {"name": "dnsproxy", "namespace": "switchback"},
        "spec": {"selector": {"app": "dnsproxy"}, **full},
    }


def pods(*ready: bool | None) -> Manifest:
    endpoints = [{"addresses": ["192.0.2.7"], "conditions": {} if one is None else {"ready": one}} for one in ready]
    labels = {"kubernetes.io/service-name": "dnsproxy"}
    metadata = {"name": "dnsproxy-x", "namespace": "switchback", "labels": labels}
    return {"kind": "EndpointSlice", "metadata": metadata, "endpoints": endpoints}


def deployment(*args: str, env: Sequence[dict[str, Any]] = (), **pod: Any) -> Manifest:
    container = {"name": "dnsproxy", "image": "switchback", "args": ["serve", *args], "env": list(env)}
    spec = {"dnsPolicy": "Default", "containers": [container], **pod}
    template = {"metadata": {"labels": {"app": "dnsproxy"}}, "spec": spec}
    return {
        "kind": "Deployment",
        "metadata": {"name": "dnsproxy", "namespace": "switchback"},
        "spec": {"template": template},
    }


def find(*objects: Manifest, denies: Denies | None = None) -> FoundOwn:
    """What is found of it in a cluster with these objects."""
    api = FakeApi(objects)
    answers: dict[Request, Answer] = {}
    while wanted := find_own(answers, REF, CLUSTER_DNS).wanted:
        for request in wanted:
            denied = denies(request) if denies else None
            answers[request] = denied or _answer(request, *api.decide(request.path, request.label_selector))
    return find_own(answers, REF, CLUSTER_DNS)


def _answer(request: Request, status: int, body: Any) -> Answer:
    if status != 200:
        return None
    if request.name is None:
        return tuple(msgspec.convert(one, request.kind.type) for one in body["items"])
    return msgspec.convert(body, request.kind.type)


def refused(found: FoundOwn) -> str:
    with pytest.raises(ChangeRefused) as refusal:
        check_ready(found)
    return str(refusal.value)


def test_its_cluster_ips_of_both_families_are_what_is_asked() -> None:
    found = find(service(), pods(True, False), deployment())
    assert [str(endpoint) for endpoint in found.endpoints] == ["10.96.0.53:53", "[fd00::53]:53"]
    assert found.stanza_addresses == found.endpoints[:1]
    assert (found.ready, found.loop, found.faults) == (1, "", ())
    check_ready(found)
    assert [str(request) for request in found.asked] == [
        "get services dnsproxy in namespace switchback",
        "list endpointslices.discovery.k8s.io in namespace switchback",
        "list deployments.apps in namespace switchback",
        "list daemonsets.apps in namespace switchback",
    ]


def test_another_port_for_dns_is_asked_and_one_for_datagrams_is_needed() -> None:
    other = find(service(ports=[{"port": 8081, "protocol": "TCP"}, {"port": 5353, "protocol": "UDP"}]), pods(True))
    assert [str(endpoint) for endpoint in other.endpoints] == ["10.96.0.53:5353", "[fd00::53]:5353"]


@pytest.mark.parametrize(
    "spec",
    [
        {"clusterIP": "None", "clusterIPs": ["None"]},
        {"clusterIP": "", "clusterIPs": []},
        {"clusterIP": "nonsense", "clusterIPs": ["nonsense"]},
        {"ports": [{"port": 53, "protocol": "TCP"}]},
        {"ports": []},
        {"ports": None},
    ],
    ids=["headless", "none", "nonsense", "TCP only", "no port", "null"],
)
def test_a_service_that_coredns_cannot_ask_is_refused(spec: dict[str, Any]) -> None:
    assert "has no ClusterIP with a DNS port" in refused(find(service(**spec)))


def test_no_service_is_refused_with_the_ways_out() -> None:
    text = refused(find())
    assert "there is no Service dnsproxy in namespace switchback" in text
    assert "--service" in text
    assert "--address" in text


@pytest.mark.parametrize("slices", [[], [pods()], [pods(False, False)]], ids=["none", "empty", "not ready"])
def test_a_service_without_ready_pods_is_refused(slices: list[Manifest]) -> None:
    assert "no pod behind Service switchback/dnsproxy is ready" in refused(find(service(), *slices, deployment()))


def test_a_pod_that_does_not_say_counts_as_ready() -> None:
    assert find(service(), pods(None)).ready == 1


LOOPS = [
    (deployment(dnsPolicy=None), "has dnsPolicy ClusterFirst and no --upstream"),
    (deployment(dnsPolicy="ClusterFirst"), "has dnsPolicy ClusterFirst"),
    (deployment(dnsPolicy="ClusterFirstWithHostNet", hostNetwork=True), "has dnsPolicy ClusterFirstWithHostNet"),
    (deployment("--upstream", "10.96.0.10"), "forwards to 10.96.0.10"),
    (deployment("--upstream=10.96.0.10:53"), "forwards to 10.96.0.10:53"),
    (deployment("--upstream", "192.0.2.9", "--upstream", "169.254.20.10"), "forwards to 169.254.20.10"),
    (deployment("--upstream", "[fd00::a]:53"), "forwards to [fd00::a]:53"),
    (deployment("--upstream", "tls://10.96.0.10#dns.example.org"), "forwards to tls://10.96.0.10"),
    (deployment(env=[{"name": "DNSPROXY_UPSTREAM", "value": "192.0.2.9 10.96.0.10"}]), "forwards to 10.96.0.10"),
    (deployment(dnsPolicy="None", dnsConfig={"nameservers": ["10.96.0.10"]}), "has 10.96.0.10"),
]


@pytest.mark.parametrize(("workload", "reason"), LOOPS, ids=[f"{n}: {row[1]}" for n, row in enumerate(LOOPS)])
def test_who_would_ask_the_clusters_dns_is_refused(workload: Manifest, reason: str) -> None:
    text = refused(find(service(), pods(True), workload))
    assert f"Deployment switchback/dnsproxy {reason}" in text
    assert "--upstream" in text


@pytest.mark.parametrize(
    "workload",
    [
        deployment(),
        deployment("--upstream", "192.0.2.9", dnsPolicy="ClusterFirst"),
        deployment(env=[{"name": "DNSPROXY_UPSTREAM", "valueFrom": {}}], dnsPolicy="ClusterFirst"),
        deployment(dnsPolicy="ClusterFirst", hostNetwork=True),
        deployment(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.9"]}),
        deployment(dnsPolicy="ClusterFirst", containers=[{"name": "x", "envFrom": [{"configMapRef": {"name": "x"}}]}]),
        {**deployment(dnsPolicy="ClusterFirst"), "spec": {"template": {"metadata": {"labels": {"app": "other"}}}}},
        {**deployment(), "spec": None},
    ],
    ids=[
        "Default",
        "an upstream",
        "one from elsewhere",
        "the node's network",
        "None",
        "settings",
        "another's pods",
        "no spec",
    ],
)
def test_who_asks_others_is_no_loop(workload: Manifest) -> None:
    check_ready(find(service(), pods(True), workload))


def test_what_may_not_be_read_is_a_note_and_forbids_nothing() -> None:
    found = find(service(), deployment(), denies=lambda one: None if one.name else Denied("no rule allows it"))
    check_ready(found)
    assert found.endpoints
    notes = list(notes_on_readiness(found))
    assert any("not allowed to list endpointslices.discovery.k8s.io" in note for note in notes)


def test_a_service_that_may_not_be_read_has_no_address() -> None:
    found = find(service(), denies=lambda _: Denied("no rule allows it"))
    assert found.endpoints == ()
    assert "not allowed to get services dnsproxy" in str(found.faults[0])
    assert list(notes_on_readiness(found)) == []


@pytest.mark.parametrize(
    ("addresses", "asked"),
    [
        (["10.96.0.53"], ["10.96.0.53:53"]),
        (["10.96.0.53", "fd00::53"], ["10.96.0.53:53"]),
        (["fd00::53", "10.96.0.53"], ["[fd00::53]:53"]),
        (["None"], []),
    ],
)
def test_a_stanza_asks_the_primary_address_alone(addresses: list[str], asked: list[str]) -> None:
    found = find(service(clusterIP=addresses[0], clusterIPs=addresses), pods(True), deployment())
    assert list(map(str, found.stanza_addresses)) == asked
