"""The remedy by our admission policy: where it is offered, with which lines, and why it is not."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Component, IpModePolicy
from dnsproxy.doctor.judge.findings import Finding
from tests.dnsproxy.doctor.making import HOST, KEY, PROXY_MODE, diagnose, lines, named, service

HETZNER = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
APPLY = f"dnsproxy ip-mode --apply --service {KEY} --rewrite"
WATCH = f"dnsproxy ip-mode --watch --service {KEY}"
CHECK = f"dnsproxy ip-mode --check {HOST}"
V1 = IpModePolicy("v1", found=False)
NONE = IpModePolicy()
CILIUM_1_15 = Component("cilium", "DaemonSet kube-system/cilium", "v1.15.6", {"kube-proxy-replacement": "true"})
CILIUM_1_17 = Component("cilium", "DaemonSet kube-system/cilium", "v1.17.2", {"kube-proxy-replacement": "true"})
OPEN = Component("calico", "DaemonSet calico-system/calico-node", "v3.30.0", {"service-proxy": "true"})


def short(annotations: dict[str, str] | None = None, **fields: Any) -> Finding:
    """The finding about the short circuit of one load balancer; fields of the facts."""
    one = service(HETZNER if annotations is None else annotations, **fields.pop("of_service", {}))
    return named(diagnose(one, **fields), "short-circuited")


def own_lines(finding: Finding) -> list[str]:
    return [line for line in lines(finding) if line.startswith("dnsproxy ip-mode")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ip_mode_policy": V1}, [APPLY]),
        ({"ip_mode_policy": IpModePolicy("v1beta1")}, [APPLY]),
        ({"ip_mode_policy": NONE}, [WATCH]),
        ({"ip_mode_policy": NONE, "server_version": "v1.36.3"}, [WATCH]),
        ({"server_version": "v1.36.3"}, [APPLY]),
        ({"server_version": "v1.35.4"}, [WATCH]),
        ({"server_version": "v1.30.0"}, [WATCH]),
        ({"ip_mode_policy": V1, "components": (CILIUM_1_17,)}, [APPLY]),
        ({"ip_mode_policy": V1, "components": (OPEN,)}, [CHECK, APPLY]),
        ({"ip_mode_policy": V1, "of_service": {"source_ranges": ("198.51.100.0/24",)}}, [CHECK, APPLY]),
        ({"ip_mode_policy": V1, "of_service": {"source_ranges": ("0.0.0.0/0",)}}, [APPLY]),
    ],
    ids=["v1 is served", "v1beta1 is served", "none is served", "turned off in 1.36", "old facts of 1.36",
         "old facts of 1.35", "old facts of 1.30", "Cilium 1.17", "a data plane that is not known", "source ranges",
         "source ranges that admit all"],
)  # fmt: skip
def test_the_lines_follow_the_api_server_and_the_doubts(fields: dict[str, Any], expected: list[str]) -> None:
    finding = short(**fields)
    assert own_lines(finding) == expected
    assert not any("is not offered" in line for line in finding.evidence)


@pytest.mark.parametrize("policy", ["Local", "Cluster", ""])
def test_a_local_traffic_policy_is_a_side_effect(policy: str) -> None:
    texts = [step.text for step in short(ip_mode_policy=V1, of_service={"external_traffic_policy": policy}).steps]
    assert any("externalTrafficPolicy is Local" in text for text in texts) is (policy == "Local")


def test_it_comes_after_the_providers_own_mode_and_before_hostname_and_relay() -> None:
    texts = [step.text for step in short(ip_mode_policy=V1).steps]
    found = [
        next(number for number, text in enumerate(texts) if words in text)
        for words in ("upgrade the controller", "admission policy", "put a hostname", "answer the name with a relay")
    ]
    assert found == sorted(found)
    assert sum("Side effects: pods' traffic" in text for text in texts) == 1


@pytest.mark.parametrize(
    ("annotations", "fields", "why"),
    [
        ({"metallb.io/address-pool": "a"}, {}, "MetalLB passes packets on"),
        ({"kube-vip.io/loadbalancerIPs": "203.0.113.10"}, {}, "clients from outside are cut off"),
        ({"service.beta.kubernetes.io/azure-dns-label-name": "a"}, {}, "Azure passes packets on"),
        (
            {},
            {},
            "whether it opens connections of its own is not known; `dnsproxy ip-mode --check`",
        ),
        (HETZNER, {"of_service": {"external_ips": ("203.0.113.11",)}}, "to which ipMode does not apply"),
        (HETZNER, {"components": (CILIUM_1_15,)}, "Cilium v1.15.6 instead of kube-proxy ignores ipMode"),
        (
            HETZNER,
            {"components": (CILIUM_1_17,), "server_version": "v1.29.9"},
            "Kubernetes v1.29.9 does not keep ipMode",
        ),
    ],
    ids=["MetalLB", "kube-vip", "Azure", "unknown provider", "external IPs", "Cilium 1.15", "Kubernetes 1.29"],
)
def test_one_line_says_why_it_is_not_offered(annotations: dict[str, str], fields: dict[str, Any], why: str) -> None:
    finding = short(annotations, ip_mode_policy=V1, **fields)
    assert own_lines(finding) == []
    (reason,) = (line for line in finding.evidence if "is not offered" in line)
    assert why in reason


def test_a_mode_that_the_data_plane_ignores_is_not_written_again() -> None:
    one = service(HETZNER, points=PROXY_MODE)
    finding = named(diagnose(one, components=(CILIUM_1_15,), ip_mode_policy=V1), "ip-mode-ignored")
    assert own_lines(finding) == []
    assert not any("is not offered" in line for line in finding.evidence)
    assert "upgrade Cilium" in finding.steps[0].text
    assert not any("Side effects: pods" in step.text for step in finding.steps)


def test_names_are_quoted_because_a_file_of_facts_is_not_trusted() -> None:
    finding = short(ip_mode_policy=V1, of_service={"key": "a/$(reboot)"})
    assert own_lines(finding) == ["dnsproxy ip-mode --apply --service 'a/$(reboot)' --rewrite"]
