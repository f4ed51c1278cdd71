"""The lines to type."""

from __future__ import annotations

import shlex

import pytest

from dnsproxy.doctor.facts.probes import Header
from dnsproxy.doctor.judge.remedies import probe_by_hand
from tests.dnsproxy.doctor.making import diagnose, named, service

BETA = "service.beta.kubernetes.io/"


@pytest.mark.parametrize(
    ("ips", "expected"),
    [
        (("10.96.0.80",), "::10.96.0.80:"),
        (("2001:db8::50",), "::[2001:db8::50]:"),
        (("2001:db8::50", "10.96.0.80"), "::[2001:db8::50]:"),
        ((), "::ingress-nginx-controller.ingress-nginx.svc:"),
    ],
    ids=["IPv4", "IPv6", "both", "none"],
)
def test_curl_gets_an_address_that_it_can_parse(ips: tuple[str, ...], expected: str) -> None:
    words = shlex.split(probe_by_hand(service(cluster_ips=ips), "app.example.org", Header.V1))
    assert words[words.index("--connect-to") + 1] == expected


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (
            {f"{BETA}scw-loadbalancer-proxy-protocol-v1": "*"},
            "needs scaleway-cloud-controller-manager v0.33.0 or newer",
        ),
        ({"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}, "from v1.21.0 if the annotation turns it on"),
        ({"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}, "from v1.29.1 also if HCLOUD_LOAD_BALANCERS"),
        ({"loadbalancer.openstack.org/proxy-protocol": "v1"}, "openstack-cloud-controller-manager v1.30.0 or newer"),
        ({"lb.stackit.cloud/tcp-proxy-protocol": "true"}, "needs cloud-provider-stackit v1.31.6, "),
        ({f"{BETA}oci-load-balancer-connection-proxy-protocol-version": "1"}, "v1.29.2, v1.30.0 or newer"),
        ({f"{BETA}osc-load-balancer-proxy-protocol": "*"}, "v1.34.1 or newer"),
    ],
    ids=["Scaleway", "Hetzner", "Hetzner's default", "OpenStack", "STACKIT", "Oracle", "Outscale"],
)
def test_a_remedy_by_ip_mode_names_the_controller_that_it_needs(annotations: dict[str, str], words: str) -> None:
    step = named(diagnose(service(annotations)), "short-circuited").steps[0]
    assert "ipMode: Proxy" in step.text
    assert words in step.text


@pytest.mark.parametrize(
    ("annotations", "load_balancer_class"),
    [
        ({f"{BETA}alibaba-cloud-loadbalancer-proxy-protocol": "on"}, "alibabacloud.com/nlb"),
        ({"loadbalancer.ovhcloud.com/class": "iolb", f"{BETA}ovh-loadbalancer-proxy-protocol": "v2"}, ""),
    ],
    ids=["an NLB of Alibaba", "an older load balancer of OVH"],
)
def test_a_hostname_that_the_load_balancer_does_not_take_is_not_offered(
    annotations: dict[str, str], load_balancer_class: str
) -> None:
    finding = named(diagnose(service(annotations, load_balancer_class=load_balancer_class)), "short-circuited")
    assert [step for step in finding.steps if "hostname" in step.text] == []


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        (
            {f"{BETA}scw-loadbalancer-proxy-protocol-v1": "*", f"{BETA}scw-loadbalancer-ip-mode": "Proxy"},
            "scw-loadbalancer-ip-mode is set, but the status does not show it: see what the controller says; needs "
            "scaleway-cloud-controller-manager v0.33.0 or newer",
        ),
        (
            {
                f"{BETA}do-loadbalancer-enable-proxy-protocol": "true",
                f"{BETA}do-loadbalancer-hostname": "a.example.org",
            },
            "do-loadbalancer-hostname is set, but the status does not show it",
        ),
    ],
    ids=["ipMode", "hostname"],
)
def test_a_remedy_that_was_taken_and_had_no_effect_is_not_offered_again(
    annotations: dict[str, str], words: str
) -> None:
    steps = named(diagnose(service(annotations)), "short-circuited").steps
    (step,) = (step for step in steps if words in step.text)
    assert step.lines == ("kubectl -n ingress-nginx describe service ingress-nginx-controller",)


@pytest.mark.parametrize(
    "annotations",
    [
        {f"{BETA}scw-loadbalancer-ip-mode": "VIP"},
        {f"{BETA}scw-loadbalancer-ip-mode": ""},
        {f"{BETA}scw-loadbalancer-proxy-protocol-v1": "*"},
    ],
    ids=["another value", "empty", "unset"],
)
def test_a_remedy_that_was_not_taken_is_offered(annotations: dict[str, str]) -> None:
    annotations |= {f"{BETA}scw-loadbalancer-proxy-protocol-v1": "*"}
    step = named(diagnose(service(annotations)), "short-circuited").steps[0]
    assert step.lines[0].endswith("scw-loadbalancer-ip-mode=Proxy")
