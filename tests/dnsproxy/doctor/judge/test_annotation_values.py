"""Every annotation about the header: its exact values, and what the controller makes of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.providers import PROVIDERS, provider_of, sends
from tests.dnsproxy.doctor.making import service

BETA: Final = "service.beta.kubernetes.io/"
YES, SOME, NO, UNKNOWN = Sends.YES, Sends.SOME, Sends.NO, Sends.UNKNOWN

GO_BOOL: Final = {
    YES: ("true", "1", "t", "T", "TRUE", "True"),
    NO: ("false", "0", "", "yes", "on", "enabled", "tRUE", " true ", "v2"),
}
"""What a controller with strconv.ParseBool makes of a value."""
LINODE: Final = {YES: ("v1", "v2", "V2"), NO: ("none", "true", "1", "v3", "")}
SCALEWAY: Final = {
    YES: ("*", "true", "T", "80,443", "80, 443"),
    SOME: ("443",),
    NO: ("1", "0", "false", "", "8443", "443,https", "0,443", "443,65536", "443,", "on", "**", " * "),
}
UPCLOUD_ON: Final = '"properties": {"outbound_proxy_protocol": "v1"}'

VALUES: Final[Mapping[str, Mapping[Sends, tuple[str, ...]]]] = {
    "load-balancer.hetzner.cloud/uses-proxyprotocol": GO_BOOL,
    f"{BETA}do-loadbalancer-enable-proxy-protocol": GO_BOOL,
    f"{BETA}scw-loadbalancer-proxy-protocol-v1": SCALEWAY,
    f"{BETA}scw-loadbalancer-proxy-protocol-v2": SCALEWAY,
    f"{BETA}scw-loadbalancer-send-proxy-v2": {
        YES: ("true", "1", "80,443"),
        SOME: ("443",),
        NO: ("false", "0", "", "*", "https"),
    },
    f"{BETA}linode-loadbalancer-default-proxy-protocol": LINODE,
    f"{BETA}linode-loadbalancer-proxy-protocol": LINODE,
    f"{BETA}linode-loadbalancer-port-443": {
        SOME: ('{"proxy-protocol": "v1"}', '{"proxy-protocol": "V2"}'),
        NO: (
            '{"proxy-protocol": "none"}',
            '{"proxy-protocol": "true"}',
            '{"proxy-protocol": true}',
            '{"protocol": "tcp"}',
            "{",
            "[]",
            "v1",
            "",
        ),
    },
    f"{BETA}vultr-loadbalancer-proxy-protocol": GO_BOOL,
    "kubernetes.civo.com/loadbalancer-enable-proxy-protocol": {
        YES: ("send-proxy", "send-proxy-v2"),
        UNKNOWN: ("true", "none", "Send-Proxy"),
        NO: ("",),
    },
    f"{BETA}upcloud-load-balancer-config": {
        YES: (
            '{"backends": [{"properties": {"outbound_proxy_protocol": "v2"}}]}',
            f'{{"backends": [{{"name": "http", {UPCLOUD_ON}}}, {{"name": "https", {UPCLOUD_ON}}}]}}',
        ),
        SOME: (f'{{"backends": [{{"name": "https", {UPCLOUD_ON}}}]}}',),
        NO: (
            f'{{"backends": [{{"name": "other", {UPCLOUD_ON}}}]}}',
            '{"backends": [{"properties": {"outbound_proxy_protocol": ""}}]}',
            '{"backends": [{"properties": {"outbound_proxy_protocol": "1"}}]}',
            '{"backends": [{"properties": {"outbound_proxy_protocol": ["v1"]}}]}',
            '{"backends": [{"properties": null}]}',
            '{"backends": ["outbound_proxy_protocol"]}',
            '{"backends": [',
            '{"outbound_proxy_protocol": "v1"}',
            "[" * 100_000,
            "",
        ),
    },
    "lb.stackit.cloud/tcp-proxy-protocol": GO_BOOL,
    "yawol.stackit.cloud/tcpProxyProtocol": GO_BOOL,
    f"{BETA}oci-load-balancer-connection-proxy-protocol-version": {
        YES: ("1", "2"),
        NO: ("v1", "v2", "0", "3", "true", "", "1 ", "9" * 5_000),
    },
    f"{BETA}ovh-loadbalancer-proxy-protocol": {
        YES: ("v1", "v2", "v2-ssl", "v2-ssl-cn", "v2_ssl", "v2_ssl_cn"),
        NO: ("true", "1", "V2", "v3", ""),
    },
    "loadbalancer.openstack.org/proxy-protocol": {
        YES: ("true", "v1", "v2"),
        NO: ("V1", "1", "TRUE", "on", "false", ""),
    },
    f"{BETA}alibaba-cloud-loadbalancer-proxy-protocol": {YES: ("on",), NO: ("true", "1", "ON", "off", "")},
    f"{BETA}alicloud-loadbalancer-proxy-protocol": {YES: ("on",), NO: ("true", "On", "")},
    f"{BETA}cloudstack-load-balancer-proxy-protocol": {YES: ("true",), NO: ("True", "1", "t", "on", "false", "")},
    f"{BETA}osc-load-balancer-proxy-protocol": {
        YES: ("*", "30080,*"),
        SOME: ("30080", "30080,30443"),
        NO: ("true", " *", "https", ""),
    },
    f"{BETA}aws-load-balancer-proxy-protocol": {YES: ("*",), NO: ("true", "443", "**", " *", "")},
}
"""For a Service with the ports 80 (http) and 443 (https): what the load balancer sends, by the annotation's value."""
IN_OTHER_TABLES: Final = ("aws-load-balancer-", "is-ppv2-enabled", "azure-pls-", "ports-filter", "PortsFilter")
"""Annotations that count only with others: test_header_annotations.py."""


@pytest.mark.parametrize("key", VALUES)
def test_a_value_is_read_as_its_controller_reads_it(key: str) -> None:
    def read(text: str) -> Sends:
        one = service({key: text})
        return sends(provider_of(one), one)

    wrong = [
        f"{text:.60}: {read(text).name} instead of {expected.name}"
        for expected, texts in VALUES[key].items()
        for text in texts
        if read(text) is not expected
    ]
    assert wrong == []


def test_every_annotation_of_a_row_has_its_exact_values_here() -> None:
    keys = {switch.key.replace("{port}", "443") for provider in PROVIDERS for switch in provider.switches}
    assert {key for key in keys - VALUES.keys() if not any(part in key for part in IN_OTHER_TABLES)} == set()
