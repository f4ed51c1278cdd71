"""Annotations about the header that count together, and the kinds of load balancer that have them."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Port
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.providers import PROVIDERS, provider_of, sends
from tests.dnsproxy.doctor.making import service

BETA: Final = "service.beta.kubernetes.io/"
YES, SOME, NO, UNKNOWN = Sends.YES, Sends.SOME, Sends.NO, Sends.UNKNOWN
NLB: Final = {f"{BETA}aws-load-balancer-type": "external"}
IN_TREE: Final = {f"{BETA}aws-load-balancer-type": "nlb"}
ATTRIBUTES: Final = f"{BETA}aws-load-balancer-target-group-attributes"
PER_GROUP: Final = f"{BETA}aws-load-balancer-proxy-protocol-per-target-group"
HEADER: Final = f"{BETA}aws-load-balancer-proxy-protocol"
ON: Final = "proxy_protocol_v2.enabled=true"
OFF: Final = "proxy_protocol_v2.enabled=false"
OCI_NLB: Final = {"oci.oraclecloud.com/load-balancer-type": "nlb"}
PPV2: Final = "oci-network-load-balancer.oraclecloud.com/is-ppv2-enabled"
OCI: Final = f"{BETA}oci-load-balancer-connection-proxy-protocol-version"
PLS: Final = f"{BETA}azure-pls-proxy-protocol"
PLS_CREATE: Final = f"{BETA}azure-pls-create"
OVH: Final = f"{BETA}ovh-loadbalancer-proxy-protocol"
OVH_CLASS: Final = "loadbalancer.ovhcloud.com/class"
OPENSTACK: Final = "loadbalancer.openstack.org/proxy-protocol"
LINODE_DEFAULT: Final = f"{BETA}linode-loadbalancer-default-proxy-protocol"
LINODE_443: Final = f"{BETA}linode-loadbalancer-port-443"
LINODE_OLD: Final = f"{BETA}linode-loadbalancer-proxy-protocol"
FILTER: Final = "lb.stackit.cloud/tcp-proxy-protocol-ports-filter"
STACKIT: Final = "lb.stackit.cloud/tcp-proxy-protocol"
SCW: Final = f"{BETA}scw-loadbalancer-"
ALIBABA: Final = f"{BETA}alibaba-cloud-loadbalancer-proxy-protocol"

TOGETHER: Final = {
    "classic without a value": ({f"{BETA}aws-load-balancer-scheme": "internal"}, NO),
    "classic with attributes": ({ATTRIBUTES: ON}, NO),
    "in-tree nlb with attributes": ({**IN_TREE, ATTRIBUTES: ON}, YES),
    "in-tree nlb with two attributes": ({**IN_TREE, ATTRIBUTES: f"preserve_client_ip.enabled=false, {ON}"}, YES),
    "in-tree nlb refuses other attributes": ({**IN_TREE, ATTRIBUTES: f"stickiness.enabled=true,{ON}"}, NO),
    "in-tree nlb refuses spaces": ({**IN_TREE, ATTRIBUTES: "proxy_protocol_v2.enabled = true"}, NO),
    "in-tree nlb refuses other values": ({**IN_TREE, ATTRIBUTES: "proxy_protocol_v2.enabled=1"}, NO),
    "in-tree nlb off": ({**IN_TREE, ATTRIBUTES: OFF}, NO),
    "in-tree nlb ignores the star": ({**IN_TREE, HEADER: "*"}, NO),
    "in-tree nlb ignores ports": ({**IN_TREE, PER_GROUP: "80,443"}, NO),
    "nlb with the star": ({**NLB, HEADER: "*"}, YES),
    "nlb refuses true": ({**NLB, HEADER: "true"}, NO),
    "nlb with attributes": ({**NLB, ATTRIBUTES: f"stickiness.enabled=true, {ON}"}, YES),
    "nlb with spaces": ({**NLB, ATTRIBUTES: "a=b, proxy_protocol_v2.enabled = true"}, YES),
    "nlb refuses a part without a value": ({**NLB, ATTRIBUTES: f"{ON},stickiness"}, NO),
    "nlb for ports": ({**NLB, PER_GROUP: "80, 443"}, YES),
    "nlb for one port": ({**NLB, PER_GROUP: "443,"}, SOME),
    "nlb refuses names of ports": ({**NLB, PER_GROUP: "https"}, NO),
    "nlb ports before attributes": ({**NLB, PER_GROUP: "443", ATTRIBUTES: ON}, SOME),
    "nlb star before ports": ({**NLB, PER_GROUP: "443", HEADER: "*"}, YES),
    "nlb attributes of a port": ({**NLB, f"{ATTRIBUTES}.443": ON, ATTRIBUTES: OFF}, SOME),
    "nlb attributes of another port": ({**NLB, f"{ATTRIBUTES}.8443": OFF, ATTRIBUTES: ON}, YES),
    "nlb other attributes of a port": ({**NLB, f"{ATTRIBUTES}.443": "a=b", ATTRIBUTES: ON}, YES),
    "nlb-ip with attributes": ({f"{BETA}aws-load-balancer-type": "nlb-ip", ATTRIBUTES: ON}, YES),
    "oracle nlb": ({**OCI_NLB, PPV2: "true"}, YES),
    "oracle nlb in upper case": ({"oci.oraclecloud.com/load-balancer-type": "NLB", PPV2: "TRUE"}, YES),
    "oracle nlb refuses 1": ({**OCI_NLB, PPV2: "1"}, NO),
    "oracle nlb ignores the version": ({**OCI_NLB, OCI: "1"}, NO),
    "oracle lb ignores ppv2": ({PPV2: "true"}, NO),
    "azure without a header": ({f"{BETA}azure-load-balancer-internal": "true"}, NO),
    "azure private link": ({PLS_CREATE: "true", PLS: " True "}, YES),
    "azure private link, refused": ({PLS_CREATE: "true", PLS: "1"}, NO),
    "azure private link, not created": ({PLS_CREATE: "false", PLS: "true"}, NO),
    "azure private link, not asked for": ({PLS: "true"}, NO),
    "ovh octavia": ({OVH_CLASS: "octavia", OPENSTACK: "v2"}, YES),
    "ovh octavia ignores the old one": ({OVH_CLASS: "octavia", OVH: "v2"}, NO),
    "ovh iolb": ({OVH_CLASS: "iolb", OVH: "v2-ssl"}, YES),
    "ovh iolb ignores the new one": ({OVH_CLASS: "iolb", OPENSTACK: "v2"}, NO),
    "ovh by its version": ({f"{BETA}ovh-loadbalancer-balance": "source", OPENSTACK: "true"}, YES),
    "linode port before default": ({LINODE_443: '{"proxy-protocol": "none"}', LINODE_DEFAULT: "v2"}, SOME),
    "linode port without it": ({LINODE_443: '{"protocol": "tcp"}', LINODE_DEFAULT: "v2"}, YES),
    "linode port refused": ({LINODE_443: "{", LINODE_DEFAULT: "v2"}, SOME),
    "linode other port": ({f"{BETA}linode-loadbalancer-port-8443": '{"proxy-protocol": "v2"}'}, NO),
    "linode default before the old one": ({LINODE_DEFAULT: "none", LINODE_OLD: "v1"}, NO),
    "stackit ports": ({STACKIT: "true", FILTER: "443"}, SOME),
    "stackit all ports": ({STACKIT: "true", FILTER: "80, 443"}, YES),
    "stackit no ports": ({STACKIT: "true", FILTER: ""}, NO),
    "stackit refuses names": ({STACKIT: "true", FILTER: "https"}, NO),
    "stackit ports alone": ({FILTER: "80,443"}, NO),
    "stackit old ports": ({STACKIT: "true", "yawol.stackit.cloud/tcpProxyProtocolPortsFilter": "443"}, SOME),
    "scaleway both versions": ({f"{SCW}proxy-protocol-v1": "80", f"{SCW}proxy-protocol-v2": "443"}, YES),
    "scaleway old one": ({f"{SCW}proxy-protocol-v1": "false", f"{SCW}send-proxy-v2": "443"}, SOME),
    "alibaba new before old": ({ALIBABA: "off", f"{BETA}alicloud-loadbalancer-proxy-protocol": "on"}, NO),
    "hetzner by its environment": ({"load-balancer.hetzner.cloud/location": "fsn1"}, UNKNOWN),
    "digitalocean without it": ({f"{BETA}do-loadbalancer-name": "web"}, NO),
    "nobody's": ({"example.org/proxy-protocol": "true"}, UNKNOWN),
    "nothing": ({}, UNKNOWN),
}  # fmt: skip


@pytest.mark.parametrize(("annotations", "expected"), TOGETHER.values(), ids=list(TOGETHER))
def test_annotations_together_are_read_as_the_controller_reads_them(
    annotations: dict[str, str], expected: Sends
) -> None:
    one = service(annotations)
    assert sends(provider_of(one), one) is expected


@pytest.mark.parametrize(
    ("load_balancer_class", "annotations", "expected"),
    [
        ("service.k8s.aws/nlb", {ATTRIBUTES: f"a=b,{ON}"}, YES),
        ("service.k8s.aws/nlb", {f"{BETA}aws-load-balancer-type": "nlb", HEADER: "*"}, YES),
        ("eks.amazonaws.com/nlb", {HEADER: "*"}, YES),
        ("example.org/other", {ATTRIBUTES: ON}, NO),
        ("alibabacloud.com/nlb", {ALIBABA: "ON"}, YES),
        ("alibabacloud.com/nlb", {ALIBABA: "true"}, NO),
        ("alibabacloud.com/clb", {ALIBABA: "ON"}, NO),
    ],
    ids=[
        "aws",
        "aws, not the type",
        "auto mode",
        "another class",
        "alibaba nlb",
        "alibaba nlb, refused",
        "alibaba clb",
    ],
)
def test_the_class_of_the_load_balancer_chooses_the_switches(
    load_balancer_class: str, annotations: dict[str, str], expected: Sends
) -> None:
    one = service(annotations, load_balancer_class=load_balancer_class)
    assert sends(provider_of(one), one) is expected


def test_a_service_without_ports_is_read_for_80_and_443() -> None:
    one = service({f"{SCW}proxy-protocol-v1": "80,443"}, ports=())
    assert sends(provider_of(one), one) is YES
    one = replace(one, ports=(Port(80), Port(443), Port(8443)))
    assert sends(provider_of(one), one) is SOME


def test_every_annotation_of_a_kind_is_in_a_table_here() -> None:
    keys = {switch.key.replace("{port}", "443") for one in PROVIDERS for switch in one.switches if switch.kinds}
    assert keys - {OPENSTACK, f"{BETA}alicloud-loadbalancer-proxy-protocol"} <= {
        key for annotations, _ in TOGETHER.values() for key in annotations
    }
