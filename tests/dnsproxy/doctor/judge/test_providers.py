"""Every provider: how its Services are recognised, and the findings about them."""

from __future__ import annotations

from typing import Final

import pytest

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.findings import Severity
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.providers import ANNOTATION_MARKS, PROVIDERS, UNKNOWN, provider_of, sends
from tests.dnsproxy.doctor.making import (
    BOTH,
    DEPLOYED,
    HOSTNAME,
    IP,
    OLD_IP,
    PROXY_MODE,
    UNSEEN,
    bad,
    diagnose,
    ids,
    lines,
    named,
    service,
)

BETA: Final = "service.beta.kubernetes.io/"

SWITCHED_ON: Final = {
    "Hetzner": {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"},
    "DigitalOcean": {f"{BETA}do-loadbalancer-enable-proxy-protocol": "true"},
    "Scaleway": {f"{BETA}scw-loadbalancer-proxy-protocol-v2": "*"},
    "Linode": {f"{BETA}linode-loadbalancer-default-proxy-protocol": "v2"},
    "Vultr": {f"{BETA}vultr-loadbalancer-proxy-protocol": "true"},
    "Civo": {"kubernetes.civo.com/loadbalancer-enable-proxy-protocol": "send-proxy"},
    "UpCloud": {
        f"{BETA}upcloud-load-balancer-config": '{"backends": [{"properties": {"outbound_proxy_protocol": "v2"}}]}'
    },
    "STACKIT": {"lb.stackit.cloud/tcp-proxy-protocol": "true"},
    "Oracle": {f"{BETA}oci-load-balancer-connection-proxy-protocol-version": "2"},
    "OVH": {f"{BETA}ovh-loadbalancer-proxy-protocol": "v2"},
    "OpenStack": {"loadbalancer.openstack.org/proxy-protocol": "true"},
    "Alibaba": {f"{BETA}alibaba-cloud-loadbalancer-proxy-protocol": "on"},
    "CloudStack": {f"{BETA}cloudstack-load-balancer-proxy-protocol": "true"},
    "Outscale": {f"{BETA}osc-load-balancer-proxy-protocol": "*"},
    "AWS": {f"{BETA}aws-load-balancer-proxy-protocol": "*"},
}
"""Annotations that turn the header on."""

NEVER: Final = {
    "Exoscale": {f"{BETA}exoscale-loadbalancer-name": "web"},
    "Azure": {f"{BETA}azure-load-balancer-internal": "false"},
    "Google Cloud": {"cloud.google.com/neg": '{"ingress": true}'},
    "MetalLB": {"metallb.universe.tf/address-pool": "public"},
    "kube-vip": {"kube-vip.io/loadbalancerIPs": "203.0.113.10"},
    "Cilium LB-IPAM": {"lbipam.cilium.io/ips": "203.0.113.10"},
}


def test_every_row_is_recognised_here() -> None:
    assert {provider.name for provider in PROVIDERS} == SWITCHED_ON.keys() | NEVER.keys()


def test_a_provider_is_recognised_by_its_annotations() -> None:
    all_of_them = SWITCHED_ON | NEVER
    found = {name: provider_of(service(annotations)).name for name, annotations in all_of_them.items()}
    assert found == {name: name for name in all_of_them}


@pytest.mark.parametrize(("name", "annotations"), SWITCHED_ON.items())
def test_a_provider_that_is_switched_on_sends_the_header(name: str, annotations: dict[str, str]) -> None:
    one = service(annotations)
    assert provider_of(one).name == name
    assert sends(provider_of(one), one) is Sends.YES


@pytest.mark.parametrize("annotations", NEVER.values(), ids=list(NEVER))
def test_a_provider_without_the_header_sends_none(annotations: dict[str, str]) -> None:
    one = service(annotations)
    assert sends(provider_of(one), one) is Sends.NO


@pytest.mark.parametrize(
    ("one", "scheme", "expected"),
    [
        (service({"loadbalancer.openstack.org/x": "", f"{BETA}ovh-loadbalancer-proxy-protocol": "v2"}), "", "OVH"),
        (service({"lb.stackit.cloud/tcp-proxy-protocol": "true", "loadbalancer.openstack.org/x": ""}), "", "STACKIT"),
        (service(load_balancer_class="service.k8s.aws/nlb"), "", "AWS"),
        (service(load_balancer_class="io.cilium/l2-announcer"), "hcloud", "Cilium LB-IPAM"),
        (service({"load-balancer.hetzner.cloud/name": "a"}, load_balancer_class="metallb.io/a"), "hcloud", "MetalLB"),
        (service(load_balancer_class="example.org/own"), "hcloud", UNKNOWN.name),
        (service({"metallb.io/address-pool": "a"}, load_balancer_class="example.org/own"), "hcloud", "MetalLB"),
        (service(), "hcloud", "Hetzner"),
        (service(), "aws", "AWS"),
        (service(), "ocid1", "Oracle"),
        (service({"metallb.universe.tf/address-pool": "a"}), "hcloud", "MetalLB"),
        (service(), "k3s", UNKNOWN.name),
        (service(), "", UNKNOWN.name),
        (service({"hetzner.cloud/": "x"}), "", UNKNOWN.name),
        (Service("a/b"), "https", UNKNOWN.name),
    ],
    ids=["ovh on openstack", "stackit on openstack", "class", "class before nodes", "class before annotations",
         "class of somebody else", "class of one's own, and annotations", "nodes of hetzner", "nodes of aws",
         "nodes of oracle", "annotation before nodes", "nodes of k3s", "nothing", "alike", "empty"],
)  # fmt: skip
def test_the_nearest_sign_counts(one: Service, scheme: str, expected: str) -> None:
    assert provider_of(one, scheme).name == expected


OWN_LINE: Final = "dnsproxy ip-mode --watch --service ingress-nginx/ingress-nginx-controller"

FIRST_LINES: Final = {
    "Hetzner": "load-balancer.hetzner.cloud/hostname=lb.example.org",
    "DigitalOcean": f"{BETA}do-loadbalancer-hostname=lb.example.org",
    "Scaleway": f"{BETA}scw-loadbalancer-ip-mode=Proxy",
    "Linode": f"{BETA}linode-loadbalancer-hostname-only-ingress=true",
    "Vultr": f"{BETA}vultr-loadbalancer-hostname=lb.example.org",
    "STACKIT": "lb.stackit.cloud/ip-mode-proxy=true",
    "Oracle": "oci.oraclecloud.com/ingress-ip-mode=proxy",
    "OVH": "loadbalancer.openstack.org/hostname=lb.example.org",
    "OpenStack": "loadbalancer.openstack.org/hostname=lb.example.org",
    "Alibaba": f"{BETA}alibaba-cloud-loadbalancer-hostname=lb.example.org",
    "CloudStack": f"{BETA}cloudstack-load-balancer-hostname=lb.example.org",
    "Outscale": f"{BETA}osc-load-balancer-ingress-ipmode=Proxy",
}


@pytest.mark.parametrize(("name", "annotations"), (SWITCHED_ON | NEVER).items())
def test_a_short_circuited_load_balancer_gets_its_providers_line(name: str, annotations: dict[str, str]) -> None:
    for points in (IP, OLD_IP, BOTH):
        finding = named(diagnose(service(annotations, points=points)), "short-circuited")
        assert finding.severity is Severity.PROBLEM
        told = lines(finding)
        own = [OWN_LINE] if name in SWITCHED_ON else []
        if name in FIRST_LINES:
            command = "kubectl -n ingress-nginx annotate service ingress-nginx-controller --overwrite "
            by_ip_mode = "mode" in FIRST_LINES[name]
            wanted = command + FIRST_LINES[name]
            assert told[: len(own) + 1] == ([wanted, *own] if by_ip_mode else [*own, wanted])
        else:
            assert told[:-2] == own
        assert told[-2:] == DEPLOYED


@pytest.mark.parametrize("annotations", NEVER.values(), ids=list(NEVER))
def test_our_policy_is_not_offered_where_it_cuts_clients_off_and_the_evidence_says_why(
    annotations: dict[str, str],
) -> None:
    finding = named(diagnose(service(annotations)), "short-circuited")
    assert [line for line in lines(finding) if "ip-mode" in line] == []
    (reason,) = (line for line in finding.evidence if "is not offered" in line)
    unknown = "whether it opens connections of its own is not known" in reason
    assert unknown or "clients from outside are cut off" in reason


@pytest.mark.parametrize(("name", "annotations"), SWITCHED_ON.items())
def test_the_providers_own_remedy_comes_first(name: str, annotations: dict[str, str]) -> None:
    steps = named(diagnose(service(annotations)), "short-circuited").steps
    assert "ipMode: Proxy" in steps[0].text
    assert "Side effects: pods' traffic to the host leaves the cluster" in steps[0].text
    assert "without side effects" not in " ".join(step.text for step in steps)
    if name in ("Hetzner", "OpenStack", "Scaleway", "STACKIT", "Oracle", "Outscale"):
        assert "MutatingAdmissionPolicy" not in steps[0].text
    if name in ("Hetzner", "DigitalOcean", "Vultr", "OpenStack", "Alibaba"):
        hostname = next(step for step in steps if "put a hostname instead" in step.text)
        assert "need not be one of them" in hostname.text
        assert "external-dns turns A records into CNAME" in hostname.text


@pytest.mark.parametrize("annotations", SWITCHED_ON.values(), ids=list(SWITCHED_ON))
def test_a_provider_that_has_done_it_leaves_nothing_to_do(annotations: dict[str, str]) -> None:
    for points in (PROXY_MODE, HOSTNAME):
        diagnosis = diagnose(service(annotations, points=points), **UNSEEN)
        assert "no-short-circuit" in ids(diagnosis)
        assert bad(diagnosis) == set()


@pytest.mark.parametrize(
    ("annotations", "load_balancer_class", "loops"),
    [
        ({f"{BETA}aws-load-balancer-type": "nlb"}, "", True),
        ({f"{BETA}aws-load-balancer-type": "external"}, "", True),
        ({}, "service.k8s.aws/nlb", True),
        ({}, "eks.amazonaws.com/nlb", True),
        ({f"{BETA}aws-load-balancer-type": "nlb-ip"}, "", False),
        ({f"{BETA}aws-load-balancer-type": "external", f"{BETA}aws-load-balancer-nlb-target-type": "ip"}, "", False),
        ({f"{BETA}aws-load-balancer-type": "nlb",
          f"{BETA}aws-load-balancer-target-group-attributes": "preserve_client_ip.enabled=false"}, "", False),
        ({f"{BETA}aws-load-balancer-type": "nlb-ip",
          f"{BETA}aws-load-balancer-target-group-attributes": "preserve_client_ip.enabled=true"}, "", True),
        ({f"{BETA}aws-load-balancer-proxy-protocol": "*"}, "", False),
        ({f"{BETA}aws-load-balancer-type": "elb"}, "", False),
    ],
    ids=["in-tree nlb", "controller, instances", "class", "auto mode", "old ip targets", "ip targets", "switched off",
         "ip targets that keep it", "classic", "classic by name"],
)  # fmt: skip
def test_the_loopback_of_an_nlb_is_a_finding_of_its_own(
    annotations: dict[str, str], load_balancer_class: str, loops: bool
) -> None:
    one = service(
        {f"{BETA}aws-load-balancer-scheme": "internet-facing", **annotations},
        points=HOSTNAME,
        load_balancer_class=load_balancer_class,
    )
    diagnosis = diagnose(one)
    assert ("nlb-loopback" in ids(diagnosis)) is loops
    assert "short-circuited" not in ids(diagnosis)
    if loops:
        step = named(diagnosis, "nlb-loopback").steps[0]
        assert "preserve_client_ip.enabled=false" in step.lines[0]
        in_tree = not load_balancer_class and annotations[f"{BETA}aws-load-balancer-type"] == "nlb"
        assert ("elasticloadbalancing:ModifyTargetGroupAttributes" in step.text) is in_tree


def test_other_attributes_of_a_target_group_stay() -> None:
    key = f"{BETA}aws-load-balancer-target-group-attributes"
    annotations = {f"{BETA}aws-load-balancer-type": "nlb", key: "proxy_protocol_v2.enabled=true"}
    line = lines(named(diagnose(service(annotations, points=HOSTNAME)), "nlb-loopback"))[0]
    assert line.endswith(f"{key}=preserve_client_ip.enabled=false,proxy_protocol_v2.enabled=true")


def test_every_annotation_of_a_row_enters_the_facts() -> None:
    keys = [
        *(switch.key for one in PROVIDERS for switch in one.switches),
        *(kind.key for one in PROVIDERS for kind in one.kinds if kind.key),
        *(setting.key for one in PROVIDERS for setting in (one.ip_mode, one.hostname) if setting is not None),
    ]
    assert [key for key in keys if not key.startswith(ANNOTATION_MARKS)] == []


BACKEND_PROTOCOL: Final = {f"{BETA}aws-load-balancer-backend-protocol": "tcp"}
"""In Contour's own manifests, for every cloud."""


@pytest.mark.parametrize(
    ("scheme", "name"),
    [("", UNKNOWN.name), ("hcloud", "Hetzner"), ("aws", "AWS")],
    ids=["no cloud", "another cloud", "AWS"],
)
def test_an_annotation_of_manifests_for_every_cloud_shows_no_vendor(scheme: str, name: str) -> None:
    assert provider_of(Service("envoy", annotations=BACKEND_PROTOCOL), scheme).name == name


def test_beside_it_an_annotation_of_the_vendor_counts() -> None:
    annotations = BACKEND_PROTOCOL | SWITCHED_ON["AWS"]
    assert provider_of(Service("envoy", annotations=annotations)).name == "AWS"
