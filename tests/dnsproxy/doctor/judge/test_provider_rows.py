"""Every row of the table of providers: its sources, and the line that turns the header on."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, date, datetime
from typing import Final

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Service
from dnsproxy.doctor.judge.header_annotations import Sends
from dnsproxy.doctor.judge.provider import Kind, Provider
from dnsproxy.doctor.judge.providers import PROVIDERS, provider_of, sends
from dnsproxy.doctor.judge.remedies import header_on
from tests.dnsproxy.doctor.making import service
from tests.kit.rows import failing

BETA: Final = "service.beta.kubernetes.io/"
YES, NO, UNKNOWN = Sends.YES, Sends.NO, Sends.UNKNOWN
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
OVH: Final = f"{BETA}ovh-loadbalancer-proxy-protocol"
OVH_CLASS: Final = "loadbalancer.ovhcloud.com/class"
OPENSTACK: Final = "loadbalancer.openstack.org/proxy-protocol"
LINODE_DEFAULT: Final = f"{BETA}linode-loadbalancer-default-proxy-protocol"
LINODE_443: Final = f"{BETA}linode-loadbalancer-port-443"
FILTER: Final = "lb.stackit.cloud/tcp-proxy-protocol-ports-filter"
STACKIT: Final = "lb.stackit.cloud/tcp-proxy-protocol"
SCW: Final = f"{BETA}scw-loadbalancer-"
ALIBABA: Final = f"{BETA}alibaba-cloud-loadbalancer-proxy-protocol"


def of_kind(provider: Provider, kind: Kind | None) -> Service:
    """A Service with a load balancer of one kind of a provider, and nothing said about the header."""
    annotations = {f"{provider.marks[0]}x": "y"}
    if kind is not None and kind.key:
        annotations[kind.key] = kind.values[0]
    by_class = kind.classes[0] if kind is not None and kind.classes and not kind.key else ""
    return service(annotations, load_balancer_class=by_class)


SENDERS: Final = [
    pytest.param(provider, kind, id=f"{provider.name} {kind.name if kind else ''}".strip())
    for provider in PROVIDERS
    for kind in (provider.kinds or (None,))
    if not provider.never_sends
]


@pytest.mark.parametrize(("provider", "kind"), SENDERS)
def test_the_line_that_turns_the_header_on_is_read_back_as_on(provider: Provider, kind: Kind | None) -> None:
    one = of_kind(provider, kind)
    assert provider_of(one) is provider
    assert sends(provider, one) in (NO, UNKNOWN)
    remedy = header_on(one, provider)
    if not remedy.lines:
        assert [switch.part for switch in provider.switches if switch.part in remedy.text and switch.part]
        return
    (line,) = remedy.lines
    key, _, value = shlex.split(line)[-1].partition("=")
    assert sends(provider, replace(one, annotations={**one.annotations, key: value})) is YES
    assert "also correct" not in remedy.text
    assert "refuses" not in remedy.text


@pytest.mark.parametrize(
    ("annotations", "words", "line"),
    [
        ({**IN_TREE}, "elasticloadbalancing:ModifyTargetGroupAttributes", f"{ATTRIBUTES}={ON}"),
        ({**IN_TREE, ATTRIBUTES: f"preserve_client_ip.enabled=false,{OFF}"}, "v1.35.0",
         f"{ATTRIBUTES}=preserve_client_ip.enabled=false,{ON}"),
        ({**IN_TREE, ATTRIBUTES: f"stickiness.enabled=true,{OFF}"}, "refuses the other settings in this annotation",
         f"stickiness.enabled=true,{ON}"),
        ({**NLB, PER_GROUP: "8443"}, "turn it on", f"{HEADER}='*'"),
        ({**OCI_NLB, OCI: "1"}, "v1.30.0", f"{PPV2}=true"),
        ({OCI: "v1"}, "turn it on", f"{OCI}=1"),
        ({ALIBABA: "true"}, "turn it on", f"{ALIBABA}=on"),
        ({f"{BETA}ovh-loadbalancer-balance": "source"}, "Kubernetes 1.31 and newer", f"{OPENSTACK}=v1"),
        ({OVH_CLASS: "iolb"}, "turn it on", f"{OVH}=v1"),
        ({f"{SCW}proxy-protocol-v2": "off"}, "turn it on", f"{SCW}proxy-protocol-v2='*'"),
        ({LINODE_443: '{"proxy-protocol": "none"}'}, f"also correct {LINODE_443}",
         f"{LINODE_DEFAULT}=v1"),
        ({FILTER: "8443"}, f"also correct {FILTER}", f"{STACKIT}=true"),
    ],
    ids=["in-tree nlb", "attributes that stay", "attributes in the way", "nlb", "oracle nlb", "oracle lb", "alibaba",
         "ovh", "ovh iolb", "the annotation that is there", "a port in the way", "a filter in the way"],
)  # fmt: skip
def test_a_missing_header_is_turned_on_by_what_the_load_balancer_takes(
    annotations: dict[str, str], words: str, line: str
) -> None:
    one = service(annotations)
    remedy = header_on(one, provider_of(one))
    assert words in remedy.text
    assert remedy.lines[0].endswith(line)


def test_every_row_has_dated_sources() -> None:
    def check(provider: Provider) -> None:
        assert provider.sources
        for source in provider.sources:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repository)
            assert re.fullmatch(r"v[\d.]+(-rc\d+)?|[0-9a-f]{12,40}", source.version)
            assert date(2026, 1, 1) < source.read <= datetime.now(UTC).date()
            assert re.fullmatch(r"[\w./-]+\.(go|md|json)", source.file)

    assert failing(check, PROVIDERS) == []
