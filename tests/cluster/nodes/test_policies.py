"""The rules for a policy, and the policies that are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.nodes.policies import Unenforceable, format_rules, matches

NAMESPACES = [
    {"metadata": {"name": "here", "labels": {"team": "a"}}},
    {"metadata": {"name": "there", "labels": {"team": "b"}}},
]


def pod(name: str, address: str, *, namespace: str = "here", **labels: str) -> dict[str, Any]:
    ports = [{"name": "dns", "containerPort": 1053, "protocol": "UDP"}, {"name": "admin", "containerPort": 8081}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name, **labels}},
        "spec": {"containers": [{"name": "main", "ports": ports}]},
        "status": {"podIP": address, "phase": "Running"},
    }


PODS = [
    pod("server", "10.0.0.1"),
    pod("client", "10.0.0.2"),
    pod("other", "10.0.0.3", namespace="there"),
    {**pod("job", "10.0.0.4"), "status": {"podIP": "10.0.0.4", "phase": "Succeeded"}},
    {"metadata": {"name": "new", "namespace": "here"}, "spec": {"containers": []}},
]
SERVER = {"matchLabels": {"app": "server"}}


def rules(*specs: dict[str, Any]) -> dict[str, list[str]]:
    """The rules by the name of their chain."""
    policies = [
        {"metadata": {"name": f"p{number}", "namespace": "here"}, "spec": spec} for number, spec in enumerate(specs)
    ]
    chains: dict[str, list[str]] = {}
    for line in format_rules(PODS, policies, NAMESPACES).splitlines():
        if line.startswith("  chain "):
            chain = chains[line.split()[1]] = []
        elif line.startswith("    "):
            chain.append(line.strip())
    return chains


def ingress(*allowed: dict[str, Any]) -> dict[str, Any]:
    return {"podSelector": SERVER, "policyTypes": ["Ingress"], "ingress": list(allowed)}


def egress(*allowed: dict[str, Any]) -> dict[str, Any]:
    return {"podSelector": SERVER, "policyTypes": ["Egress"], "egress": list(allowed)}


@pytest.mark.parametrize(
    ("spec", "chain", "expected"),
    [
        (ingress(), "ingress-10-0-0-1", []),
        (ingress({}), "ingress-10-0-0-1", ["return"]),
        (ingress({"ports": [{"port": 80}]}), "ingress-10-0-0-1", ["tcp dport 80 return"]),
        (ingress({"ports": [{"port": "dns", "protocol": "UDP"}]}), "ingress-10-0-0-1", ["udp dport 1053 return"]),
        (ingress({"ports": [{"port": "dns"}]}), "ingress-10-0-0-1", ["tcp dport 0 return"]),
        (ingress({"ports": [{"protocol": "TCP"}]}), "ingress-10-0-0-1", ["meta l4proto tcp return"]),
        (
            ingress({"from": [{"podSelector": {}}], "ports": [{"port": "admin"}]}),
            "ingress-10-0-0-1",
            ["ip saddr { 10.0.0.1, 10.0.0.2 } tcp dport 8081 return"],
        ),
        (
            ingress({"from": [{"namespaceSelector": {"matchLabels": {"team": "b"}}}]}),
            "ingress-10-0-0-1",
            ["ip saddr { 10.0.0.3 } return"],
        ),
        (ingress({"from": [{"podSelector": {"matchLabels": {"app": "nobody"}}}]}), "ingress-10-0-0-1", []),
        (
            egress({"to": [{"podSelector": {"matchLabels": {"app": "client"}}}]}),
            "egress-10-0-0-1",
            ["ip daddr { 10.0.0.2 } return"],
        ),
        (ingress({"ports": [{"port": 80, "endPort": 90}]}), "ingress-10-0-0-1", ["tcp dport 80-90 return"]),
        (
            ingress({"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}, {"podSelector": SERVER}]}),
            "ingress-10-0-0-1",
            ["ip saddr { 10.0.0.1 } return", "ip saddr 0.0.0.0/0 ip saddr != { 10.0.0.0/8 } return"],
        ),
        (
            ingress({"from": [{"ipBlock": {"cidr": "::/0", "except": ["2001:db8::/32"]}}]}),
            "ingress-10-0-0-1",
            ["ip6 saddr ::/0 ip6 saddr != { 2001:db8::/32 } return"],
        ),
        (egress({"ports": [{"port": 53, "protocol": "UDP"}]}), "egress-10-0-0-1", ["udp dport 53 return"]),
    ],
)
def test_what_is_allowed_is_let_through_and_the_rest_dropped(
    spec: dict[str, Any], chain: str, expected: list[str]
) -> None:
    assert rules(spec)[chain] == [*expected, "counter drop"]


def test_a_pod_without_a_policy_is_unrestricted() -> None:
    assert set(rules(ingress())) == {"ingress-10-0-0-1", "forward", "input"}
    assert rules(ingress())["forward"][-1] == "ip daddr vmap { 10.0.0.1 : jump ingress-10-0-0-1 }"
    assert set(rules()) == {"forward", "input"}


def dual(name: str, *addresses: str) -> dict[str, Any]:
    """A pod with several addresses."""
    made = pod(name, addresses[0])
    return {**made, "status": {**made["status"], "podIPs": [{"ip": one} for one in addresses]}}


def test_a_pod_of_two_families_has_its_rules_in_both() -> None:
    pods = [dual("server", "10.0.0.1", "2001:db8::1"), dual("client", "10.0.0.2", "2001:db8::2")]
    spec = ingress({"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]})
    written = format_rules(pods, [{"metadata": {"name": "p", "namespace": "here"}, "spec": spec}], NAMESPACES)
    assert "ip daddr vmap { 10.0.0.1 : jump ingress-10-0-0-1 }" in written
    assert "ip6 daddr vmap { 2001:db8::1 : jump ingress-10-0-0-1 }" in written
    assert "ip saddr { 10.0.0.2 } return" in written
    assert "ip6 saddr { 2001:db8::2 } return" in written


def test_the_chain_of_a_pod_of_ipv6_has_a_name_that_nft_accepts() -> None:
    spec = {"metadata": {"name": "p", "namespace": "here"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
    assert "chain ingress-2001-db8--1 {" in format_rules([dual("server", "2001:db8::1")], [spec], NAMESPACES)


def test_policies_add_up() -> None:
    both = rules({"podSelector": {}, "policyTypes": ["Ingress"]}, ingress({"ports": [{"port": 80}]}))
    assert both["ingress-10-0-0-1"] == ["tcp dport 80 return", "counter drop"]
    assert both["ingress-10-0-0-2"] == ["counter drop"]
    assert "ingress-10-0-0-3" not in both
    assert "ingress-10-0-0-4" not in both


@pytest.mark.parametrize(
    "spec",
    [
        ingress({"ports": [{"port": "dns", "endPort": 90}]}),
        egress({"ports": [{"port": "dns", "protocol": "UDP"}]}),
        {**ingress(), "podSelector": {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}},
    ],
    ids=["range-from-a-name", "name-of-another's-port", "operator"],
)
def test_what_it_cannot_express_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(Unenforceable):
        rules(spec)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "b", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "b", "operator": "DoesNotExist"}, True),
    ],
)
def test_an_expression_means_labels(expression: dict[str, Any], expected: bool) -> None:
    assert matches({"matchExpressions": [expression]}, {"a": "1"}) is expected
