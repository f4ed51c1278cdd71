"""Whom ipMode Proxy helps, whom it harms, and what nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Component, Service
from dnsproxy.doctor.judge.ip_mode_judgement import IpModeJudgement, judge_ip_mode
from dnsproxy.doctor.judge.provider_rows.hyperscalers import AWS
from dnsproxy.doctor.judge.providers import PROVIDERS, provider_of
from dnsproxy.doctor.judge.short_circuit import Answer, data_plane
from tests.dnsproxy.doctor.making import BOTH, HOSTNAME, IP, KUBE_PROXY, PROXY_MODE, facts, service

HCLOUD = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
HCLOUD_OFF = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "false"}
METALLB = {"metallb.io/address-pool": "default"}
NLB = {"service.beta.kubernetes.io/aws-load-balancer-type": "external"}
OLD = Component("kube-proxy", "DaemonSet kube-system/kube-proxy", "v1.29.1")
CALICO = Component("calico", "DaemonSet calico-system/calico-node", "v3.30.0", {"service-proxy": "true"})


def judged(one: Service, *components: Component, version: str = "v1.36.3", **options: Any) -> IpModeJudgement:
    plane = data_plane(facts(components=components or (KUBE_PROXY,), server_version=version))
    return judge_ip_mode(one, provider_of(one), plane, **options)


HARMS = [
    pytest.param(service(HCLOUD, points=IP), Answer.NO, id="it sends the header"),
    pytest.param(service(METALLB, points=IP), Answer.YES, id="MetalLB"),
    pytest.param(service(points=IP, load_balancer_class="kube-vip.io/kube-vip-class"), Answer.YES, id="kube-vip"),
    pytest.param(service(points=IP, load_balancer_class="io.cilium/bgp-control-plane"), Answer.YES, id="Cilium"),
    pytest.param(
        service({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}, points=IP),
        Answer.YES,
        id="Azure",
    ),
    pytest.param(service({"networking.gke.io/load-balancer-type": "Internal"}, points=IP), Answer.YES, id="Google"),
    pytest.param(service(HCLOUD_OFF, points=IP), Answer.UNKNOWN, id="a balancer that sends no header"),
    pytest.param(service(points=IP), Answer.UNKNOWN, id="an unknown provider"),
    pytest.param(service(points=IP, load_balancer_class="example.org/lb"), Answer.UNKNOWN, id="an unknown class"),
]


@pytest.mark.parametrize(("one", "harms"), HARMS)
def test_only_a_balancer_with_connections_of_its_own_is_harmless(one: Service, harms: Answer) -> None:
    assert judged(one).harms is harms


def test_the_word_of_the_user_counts_where_nothing_is_known_and_never_against_what_is() -> None:
    assert judged(service(points=IP), ends_connections=True).helps is Answer.YES
    assert judged(service(METALLB, points=IP), ends_connections=True).harms is Answer.YES


@pytest.mark.parametrize(
    ("version", "helps"),
    [
        pytest.param("v1.29.9", Answer.NO, id="before 1.30"),
        pytest.param("v1.30.0", Answer.YES, id="1.30"),
        pytest.param("", Answer.YES, id="unknown"),
        pytest.param("a fork", Answer.YES, id="no version"),
    ],
)
def test_an_api_server_before_1_30_keeps_no_ip_mode(version: str, helps: Answer) -> None:
    judgement = judged(service(HCLOUD, points=IP), server_version=version)
    assert (judgement.helps, any("does not keep ipMode" in one for one in judgement.obstacles)) == (
        helps,
        helps is Answer.NO,
    )


def test_a_provider_that_passes_packets_cannot_send_the_header() -> None:
    assert [one.name for one in PROVIDERS if one.passes_packets and not one.never_sends] == []


HELPS = [
    pytest.param(service(HCLOUD, points=IP), (), Answer.YES, "", id="all is known"),
    pytest.param(service(HCLOUD, points=BOTH), (), Answer.YES, "", id="ip and hostname"),
    pytest.param(service(HCLOUD, points=PROXY_MODE), (), Answer.YES, "", id="it is so already"),
    pytest.param(service(HCLOUD, points=IP), (OLD,), Answer.NO, "upgrade Kubernetes", id="an old kube-proxy"),
    pytest.param(service(HCLOUD, points=HOSTNAME), (), Answer.NO, "only hostnames", id="a hostname"),
    pytest.param(service(HCLOUD, points=()), (), Answer.NO, "no load balancer address yet", id="no address"),
    pytest.param(service(HCLOUD, points=(), type="NodePort"), (), Answer.NO, "type NodePort", id="no balancer"),
    pytest.param(
        service(HCLOUD, points=IP, external_ips=("192.0.2.7",)),
        (),
        Answer.NO,
        "externalIPs 192.0.2.7",
        id="externalIPs",
    ),
    pytest.param(service(METALLB, points=IP), (), Answer.NO, "", id="it would harm"),
    pytest.param(service(HCLOUD, points=IP), (CALICO,), Answer.UNKNOWN, "", id="an unknown data plane"),
    pytest.param(service(points=IP), (), Answer.UNKNOWN, "", id="an unknown provider"),
    pytest.param(
        service(HCLOUD, points=IP, source_ranges=("203.0.113.0/24",)), (), Answer.UNKNOWN, "", id="source ranges"
    ),
]


@pytest.mark.parametrize(("one", "components", "helps", "said"), HELPS)
def test_it_helps_only_if_nothing_is_in_the_way_and_nothing_is_open(
    one: Service, components: tuple[Component, ...], helps: Answer, said: str
) -> None:
    judgement = judged(one, *components)
    assert judgement.helps is helps
    assert said in " ".join(judgement.obstacles)


RANGES = [
    pytest.param(("198.51.100.0/24",), ("198.51.100.7",), True, id="they hold the nodes"),
    pytest.param(("198.51.100.0/24",), ("198.51.100.7", "192.0.2.7"), False, id="one node is outside"),
    pytest.param(("198.51.100.0/24",), (), False, id="the nodes are not known"),
    pytest.param(("0.0.0.0/0",), (), True, id="everybody"),
    pytest.param(("garbage",), ("192.0.2.7",), False, id="nothing that can be read"),
    pytest.param(("2001:db8::/32",), ("192.0.2.7",), False, id="the other family"),
]


@pytest.mark.parametrize(("ranges", "nodes", "admitted"), RANGES)
def test_source_ranges_must_hold_the_nodes(ranges: tuple[str, ...], nodes: tuple[str, ...], admitted: bool) -> None:
    judgement = judged(service(HCLOUD, points=IP, source_ranges=ranges), node_addresses=nodes)
    assert (judgement.helps is Answer.YES) is admitted


def test_an_nlb_that_returns_connections_stays_open() -> None:
    one = service({**NLB, "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol": "*"}, points=IP)
    plane = data_plane(facts(components=(KUBE_PROXY,), server_version="v1.36.3"))
    assert any("returns a connection" in open_.what for open_ in judge_ip_mode(one, AWS, plane).open)


def test_what_is_open_says_how_to_see_it() -> None:
    everything = judged(service(points=IP, source_ranges=("203.0.113.0/24",)), CALICO)
    assert len(everything.open) == 3
    assert all(one.what and one.how for one in everything.open)
    assert judged(service(HCLOUD, points=PROXY_MODE)).already
    assert not judged(service(HCLOUD, points=HOSTNAME)).already


def test_of_many_source_ranges_and_external_ips_a_few_are_named() -> None:
    ranges = tuple(f"10.{number // 250}.{number % 250}.0/24" for number in range(20_000))
    one = service(METALLB, points=IP, source_ranges=ranges, external_ips=ranges)
    found = judged(one)
    texts = [found.why, *found.obstacles, *(text for each in found.open for text in (each.what, each.how))]
    assert max(map(len, texts)) < 1_000
