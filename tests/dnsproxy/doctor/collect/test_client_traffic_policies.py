"""Envoy Gateway's policies about the header: those for a whole Gateway count, and only a single one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dnsproxy.doctor.collect.client_traffic_policies import PATH, ClientTrafficPolicy, with_policies
from dnsproxy.doctor.facts.model import Service
from tests.dnsproxy.doctor.collect.cluster_api import CLASSES, INGRESS, INGRESSES, Api, service

LABELS = {
    "gateway.envoyproxy.io/owning-gateway-name": "main",
    "gateway.envoyproxy.io/owning-gateway-namespace": "web",
}
MAIN = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"}
REQUIRED = {"proxy-protocol": "required"}
OPTIONAL = {"proxy-protocol": "optional"}


def policy(namespace: str = "web", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "header", "namespace": namespace}, "spec": spec}


def settings_by(*policies: Any, labels: dict[str, str] = LABELS, program: str = "envoy-gateway") -> Service:
    found = [msgspec.convert(one, ClientTrafficPolicy) for one in policies]
    return with_policies(Service("egs/envoy", labels=labels, program=program), found)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"targetRefs": [MAIN], "proxyProtocol": {}}, REQUIRED),
        ({"targetRefs": [MAIN], "proxyProtocol": {"optional": False}}, REQUIRED),
        ({"targetRefs": [MAIN], "proxyProtocol": {"optional": True}}, OPTIONAL),
        ({"targetRef": MAIN, "enableProxyProtocol": True}, REQUIRED),
        ({"targetRef": MAIN, "enableProxyProtocol": False}, {}),
        ({"targetRef": MAIN, "enableProxyProtocol": True, "proxyProtocol": {"optional": True}}, OPTIONAL),
        ({"targetRefs": [MAIN]}, {}),
        ({"targetRefs": [MAIN | {"sectionName": "https"}], "proxyProtocol": {}}, {}),
        ({"targetRefs": [MAIN | {"name": "other"}], "proxyProtocol": {}}, {}),
        ({"targetRefs": [MAIN | {"kind": "ListenerSet"}], "proxyProtocol": {}}, {}),
        ({"targetSelectors": [{"kind": "Gateway", "matchLabels": {}}], "proxyProtocol": {}}, {}),
        ({"targetRefs": None, "proxyProtocol": None}, {}),
    ],
    ids=[
        *("required", "not optional", "optional", "the former field", "the former field off", "both fields"),
        *("another matter", "one listener", "another Gateway", "another kind", "by a selector", "null"),
    ],
)
def test_a_policy_for_the_whole_gateway_counts(spec: dict[str, Any], expected: dict[str, str]) -> None:
    one = settings_by(policy(**spec))
    assert one.settings == expected
    assert one.settings_from == ("ClientTrafficPolicy web/header" if expected else "")


def test_a_policy_in_another_namespace_is_of_another_gateway() -> None:
    assert settings_by(policy("other", targetRefs=[MAIN], proxyProtocol={})).settings == {}


@pytest.mark.parametrize(
    "other",
    [
        {"targetRefs": [MAIN | {"sectionName": "https"}], "proxyProtocol": {"optional": True}},
        {"targetRefs": [MAIN | {"sectionName": "https"}], "tls": {"minVersion": "1.3"}},
        {"targetRefs": [MAIN]},
        {"targetSelectors": [{"kind": "Gateway", "matchLabels": {}}]},
    ],
    ids=["a listener's header", "another matter of a listener", "another matter of the Gateway", "a selector"],
)
def test_a_second_policy_leaves_the_header_open(other: dict[str, Any]) -> None:
    assert settings_by(policy(targetRefs=[MAIN], proxyProtocol={}), policy(**other)).settings == {}


@pytest.mark.parametrize(
    ("labels", "program"), [({}, "envoy-gateway"), (LABELS, "contour")], ids=["no Gateway", "program"]
)
def test_only_a_gateways_envoys_have_policies(labels: dict[str, str], program: str) -> None:
    one = settings_by(policy(targetRefs=[MAIN], proxyProtocol={}), labels=labels, program=program)
    assert one.settings == {}


def cluster(**labels: str) -> dict[str, Any]:
    found = service("ingress")
    found["metadata"]["labels"] = labels
    classes = [{"metadata": {"name": "c"}, "spec": {"controller": "gateway.envoyproxy.io/gatewayclass-controller"}}]
    ingress = INGRESS | {"spec": INGRESS["spec"] | {"ingressClassName": "c"}}
    return {INGRESSES: [ingress], "/api/v1/services": [found], CLASSES: classes}


async def test_the_policies_are_read_for_a_gateways_envoys() -> None:
    api = Api(cluster(**LABELS) | {PATH: [policy(targetRefs=[MAIN], proxyProtocol={})]})
    (one,) = (await api.read()).services
    assert (one.program, one.settings) == ("envoy-gateway", REQUIRED)
    assert one.settings_from == "ClientTrafficPolicy web/header"


async def test_no_other_cluster_is_asked_for_policies() -> None:
    api = Api(cluster())
    await api.read()
    assert ("GET", PATH) not in api.asked


async def test_policies_that_may_not_be_read_are_unknown_and_named() -> None:
    seen = await Api(cluster(**LABELS), status={PATH: 403}).read()
    assert [one.what for one in seen.refusals] == ["list clienttrafficpolicies.gateway.envoyproxy.io"]
    assert seen.services[0].settings_from == ""
