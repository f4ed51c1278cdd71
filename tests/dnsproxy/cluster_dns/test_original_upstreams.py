"""Where the clusters of the corpus forward without the stanza, and the comparison with a dnsproxy's report."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.cluster_dns.original_upstreams import check_upstreams, find_original
from dnsproxy.cluster_dns.probe_results import Outcome, ProbeResult
from dnsproxy.corefile.upstream_routes import format_routes
from sidecar.values.endpoints import Endpoint
from tests.kit.manifest_cluster import NAMES, discover, manifests, pick
from tests.kit.manifest_edits import where_of

ANSWERS = Endpoint("10.96.0.53", 53)


def asked(*forwards: str | None) -> tuple[ProbeResult, ...]:
    return (ProbeResult(ANSWERS, ".", tuple(Outcome(ours=True, rcode=0, forwards=one) for one in forwards)),)


@pytest.mark.parametrize("name", NAMES)
def test_the_upstreams_of_every_cluster_are_known_and_can_be_followed(name: str) -> None:
    original = find_original(discover(manifests(name), where_of(name)))
    assert (original.fault, original.faults(["."])) == ("", [])
    assert original.routes
    assert original.source


def test_an_imported_forward_has_its_place_among_those_of_the_block() -> None:
    objects = manifests("k3s")
    corefile = pick(objects, "ConfigMap", "coredns")["data"]
    corefile["Corefile"] = (
        corefile["Corefile"]
        .replace("forward . /etc/resolv.conf", "")
        .replace(
            "import /etc/coredns/custom/*.override", "import /etc/coredns/custom/*.override\n  forward . 192.0.2.1"
        )
    )
    custom = {"corp.override": "forward corp.test 10.0.0.5\n"}
    objects.append(
        {"kind": "ConfigMap", "metadata": {"name": "coredns-custom", "namespace": "kube-system"}, "data": custom}
    )
    original = find_original(discover(objects, where_of("k3s")))
    assert format_routes(original.routes) == "corp.test. 10.0.0.5; . 192.0.2.1"


@pytest.mark.parametrize(
    ("forwards", "unknown", "differences"),
    [
        pytest.param([". /etc/resolv.conf"], "", 0, id="the same"),
        pytest.param([". 192.0.2.1"], "", 1, id="another"),
        pytest.param([". /etc/resolv.conf", ". 192.0.2.1"], "", 1, id="one of two replicas"),
        pytest.param([None], "it is older", 0, id="older"),
        pytest.param([None, ". 192.0.2.1"], "", 1, id="one is older, one differs"),
        pytest.param([". /etc/resolv.conf", None], "it is older", 0, id="one is older"),
        pytest.param(["..;"], "in an unknown form", 0, id="nonsense"),
        pytest.param([], "no dnsproxy answers from here at 10.96.0.53", 0, id="silent"),
    ],
)
def test_what_was_not_reported_is_unknown_and_never_equal(
    forwards: list[str | None], unknown: str, differences: int
) -> None:
    check = check_upstreams(find_original(discover(manifests("kubeadm"))), ["."], asked(*forwards))
    assert unknown in check.unknown
    assert bool(check.unknown) is bool(unknown)
    assert len(check.differences) == differences


def test_dnsproxys_own_address_among_the_upstreams_is_a_fault_with_its_line() -> None:
    """A stanza without its markers, of which somebody has changed an option: it is no longer known by its content."""
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    changed = "forward . 10.96.0.53 /etc/resolv.conf {\n  policy sequential\n  expire 7s\n}\nforward . /etc/resolv.conf"
    data["Corefile"] = data["Corefile"].replace("forward . /etc/resolv.conf", changed)
    original = find_original(discover(objects), [ANSWERS])
    (fault,) = original.faults(["."])
    assert "10.96.0.53 is dnsproxy itself" in fault
    (difference,) = check_upstreams(original, ["."], asked(". 10.96.0.53 /etc/resolv.conf")).differences
    assert "10.96.0.53 is dnsproxy itself" in difference
    assert not find_original(discover(objects), [Endpoint("10.96.0.54", 53)]).faults(["."])


def test_an_unreadable_corefile_is_unknown() -> None:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = ". {\n grpc . 192.0.2.1\n}\n"
    original = find_original(discover(objects))
    assert "has no `forward .`" in original.fault
    assert check_upstreams(original, ["."], asked(". /etc/resolv.conf")).unknown == original.fault
    assert find_original(discover([])).fault == "the server of the cluster's DNS is unknown"


def test_a_corefile_without_a_forward_has_no_upstreams_and_that_is_no_fault() -> None:
    objects = manifests("kubeadm")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = ". {\n hosts\n}\n"
    original = find_original(discover(objects))
    assert original.fault == ""
    assert check_upstreams(original, ["."], asked(".")).differences == ()
    assert len(check_upstreams(original, ["."], asked(". /etc/resolv.conf")).differences) == 1


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param({"dnsPolicy": "Default"}, ". /etc/resolv.conf", id="the node's"),
        pytest.param(
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53", "2001:db8::53"]}},
            ". 192.0.2.53 2001:db8::53",
            id="of its own",
        ),
        pytest.param(
            {"dnsPolicy": "Default", "dnsConfig": {"nameservers": ["192.0.2.53"]}},
            ". /etc/resolv.conf 192.0.2.53",
            id="the node's and one more",
        ),
        pytest.param(
            {"dnsPolicy": "Default", "dnsConfig": {"options": [{"name": "edns0"}]}}, ". /etc/resolv.conf", id="options"
        ),
    ],
)
def test_a_resolv_conf_means_the_nameservers_of_the_pods_that_read_it(pods: dict[str, Any], expected: str) -> None:
    objects = manifests("kubeadm")
    spec = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]
    del spec["dnsPolicy"]
    spec |= pods
    original = find_original(discover(objects))
    assert format_routes(original.routes) == expected
    check = check_upstreams(original, ["."], asked(". /etc/resolv.conf"))
    assert bool(check.differences) is (expected != ". /etc/resolv.conf")
    assert ("is not the node's: name its servers with --upstream" in original.remedy) is bool(check.differences)
    assert not check_upstreams(original, ["."], asked(expected)).differences


def test_a_resolv_conf_in_a_config_map_is_none_that_dnsproxy_has() -> None:
    objects = manifests("kubeadm")
    spec = pick(objects, "Deployment", "coredns")["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "resolv", "configMap": {"name": "resolv"}})
    mount = {"name": "resolv", "mountPath": "/etc/resolv.conf", "subPath": "resolv.conf"}
    spec["containers"][0]["volumeMounts"].append(mount)
    original = find_original(discover(objects))
    (fault,) = original.faults(["."])
    assert "/etc/resolv.conf of Deployment kube-system/coredns is in a ConfigMap" in fault
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("forward . /etc/resolv.conf", "forward . 127.0.0.1:5053")
    (fault,) = find_original(discover(objects)).faults(["."])
    assert "is an address of CoreDNS's own pod" in fault


@pytest.mark.parametrize("upstream", ["127.0.0.1:5053", "tls://[::1]", "0.0.0.0", "192.0.2.1 127.0.0.53"])
def test_a_sidecar_of_coredns_is_no_upstream_that_dnsproxy_can_ask(upstream: str) -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("forward . /etc/resolv.conf", f"forward . {upstream}")
    original = find_original(discover(objects))
    (fault,) = original.faults(["."])
    assert "is an address of CoreDNS's own pod" in fault
    assert check_upstreams(original, ["."], asked(f". {upstream}")).differences


@pytest.mark.parametrize(
    ("dnsproxy", "together"),
    [
        (["127.0.0.1"], True),
        (["::1", "127.0.0.9"], True),
        (["10.96.0.53"], False),
        (["127.0.0.1", "10.96.0.53"], False),
        ([], False),
    ],
)
def test_a_dnsproxy_that_is_asked_on_loopback_alone_has_coredns_loopback(dnsproxy: list[str], together: bool) -> None:
    objects = manifests("kubeadm")
    data = pick(objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = data["Corefile"].replace("forward . /etc/resolv.conf", "forward . 127.0.0.1:5053")
    original = find_original(discover(objects), [Endpoint(host, 53) for host in dnsproxy])
    assert (original.faults(["."]) == []) is together
    assert bool(check_upstreams(original, ["."], asked(". 127.0.0.1:5053")).differences) is not together
