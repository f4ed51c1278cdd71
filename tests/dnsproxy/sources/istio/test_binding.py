"""Which Gateways a VirtualService is bound to, or why to none."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.sources.annotations import IGNORE
from dnsproxy.sources.istio.binding import bind, find_gateway, unbound
from dnsproxy.sources.istio.facts import GatewayFacts, VirtualServiceFacts, read_facts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.istio.objects import INGRESS_CLASS, gateway, service

KEY = "infra/main"
EGRESS = {"istio": "egressgateway"}
BROKEN = Unreadable(ObjectMeta("main", "infra"), "broken")


def facts_of(one: Any) -> VirtualServiceFacts:
    facts = read_facts(VIRTUAL_SERVICE, one, most=None)
    assert isinstance(facts, VirtualServiceFacts)
    return facts


def graph_of(one: Any) -> ObjectGraph:
    graph = ObjectGraph()
    if one is not None:
        graph.put(ISTIO_GATEWAY, KEY, read_facts(ISTIO_GATEWAY, one, most=None))
    return graph


@pytest.mark.parametrize(
    ("one", "classes"),
    [
        pytest.param(gateway(), (), id="any class"),
        pytest.param(gateway(), (INGRESS_CLASS, "a=b"), id="a wanted class"),
        pytest.param(gateway(selector={}), (), id="no selector"),
        pytest.param(gateway(selector={}), ("",), id="no selector, which is wanted"),
        pytest.param(gateway(selector=EGRESS), ("istio=egressgateway",), id="egress that is wanted"),
        pytest.param(gateway(selector={"istio": "egressgateway-not"}), (), id="a selector like that for egress"),
        pytest.param(gateway(annotations={IGNORE: "false"}), (), id="explicitly not ignored"),
    ],
)
def test_a_gateway_counts(one: Any, classes: tuple[str, ...]) -> None:
    assert isinstance(find_gateway(KEY, graph_of(one), classes=frozenset(classes)), GatewayFacts)


@pytest.mark.parametrize(
    ("one", "classes", "reason", "deliberate"),
    [
        pytest.param(None, (), "does not exist", False, id="absent"),
        pytest.param(BROKEN, (), "is unreadable", False, id="unreadable"),
        pytest.param(gateway(selector={"a": "x" * 2000}), (), "is unreadable", False, id="long selector"),
        pytest.param(gateway(labels={IGNORE: "true"}), (), "is ignored (switchback.dev/ignore)", True, id="ignored"),
        pytest.param(gateway(annotations={IGNORE: "?"}), (), "has an invalid annotation", False, id="bad annotation"),
        pytest.param(
            gateway(), ("a=b",), f"has the selector '{INGRESS_CLASS}', which --class-of excludes", True, id="class"
        ),
        pytest.param(gateway(selector={}), ("a=b",), "has the selector ''", True, id="no selector"),
        pytest.param(gateway(selector={"a\x1b": "b"}), ("a=b",), r"selector 'a\x1b=b'", True, id="hostile text"),
        pytest.param(
            gateway(selector=EGRESS),
            (),
            "has the selector 'istio=egressgateway', which is for egress: it counts if --class-of names it",
            True,
            id="egress",
        ),
        pytest.param(gateway(selector={"app": "istio-egressgateway", "z": "y"}), (), "egress", True, id="egress app"),
        pytest.param(gateway(selector=EGRESS), (INGRESS_CLASS,), "--class-of excludes", True, id="unwanted egress"),
    ],
)
def test_a_gateway_that_does_not_count_has_a_reason(
    one: Any, classes: tuple[str, ...], reason: str, deliberate: bool
) -> None:
    refusal = find_gateway(KEY, graph_of(one), classes=frozenset(classes))
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith("IstioGateway infra/main ")
    assert reason in refusal.reason
    assert refusal.deliberate is deliberate
    assert bind(facts_of(service("a.example.org")), KEY, graph_of(one), classes=frozenset(classes)) == refusal


@pytest.mark.parametrize(
    ("hosts", "export_to", "place"),
    [
        pytest.param(["a.example.org"], None, "web/app", id="by default"),
        pytest.param(["web/a.example.org"], ["infra"], "web/app", id="both name the other"),
        pytest.param(["web/*"], ["*"], "web/app", id="every name of a namespace"),
        pytest.param(["./a.example.org"], ["."], "infra/app", id="in one namespace"),
        pytest.param(["shop/b.example.org", "web/a.example.org"], None, "web/app", id="one of several namespaces"),
    ],
)
def test_a_gateway_and_a_virtual_service_admit_each_other(hosts: list[str], export_to: Any, place: str) -> None:
    one = facts_of(service("b.example.org", place=place, export_to=export_to))
    assert isinstance(bind(one, KEY, graph_of(gateway(*hosts)), classes=frozenset()), GatewayFacts)


@pytest.mark.parametrize(
    ("hosts", "export_to", "reason"),
    [
        pytest.param(["*"], ["."], "it is not exported to namespace infra of IstioGateway infra/main", id="private"),
        pytest.param(["*"], ["shop"], "it is not exported to namespace infra", id="exported elsewhere"),
        pytest.param(["*"], ["~"], "it is not exported to namespace infra", id="exported nowhere"),
        pytest.param(["./*"], None, "no server of IstioGateway infra/main has a host for namespace web", id="own"),
        pytest.param(["shop/a.example.org"], None, "has a host for namespace web", id="for another namespace"),
        pytest.param([], None, "has a host for namespace web", id="no hosts"),
        pytest.param(["?"], None, "has a host for namespace web", id="invalid hosts"),
    ],
)
def test_one_of_both_may_refuse(hosts: list[str], export_to: Any, reason: str) -> None:
    one = facts_of(service("a.example.org", export_to=export_to))
    refusal = bind(one, KEY, graph_of(gateway(*hosts)), classes=frozenset())
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert not refusal.deliberate


@pytest.mark.parametrize(
    ("one", "reason", "deliberate"),
    [
        pytest.param(service("a.org", gateways=None), "it is for the mesh alone", True, id="mesh"),
        pytest.param(service("a.org", gateways=["mesh"]), "it is for the mesh alone", True, id="mesh by name"),
        pytest.param(service("a.org", gateways=["a/b/c"]), "it names no valid Gateway", False, id="bad gateway"),
        pytest.param(service(gateways=None), "it has no hosts", True, id="delegate"),
        pytest.param(service("a.org", labels={IGNORE: "true"}), "it is ignored", True, id="ignored"),
        pytest.param(
            service("a.org", labels={IGNORE: "?"}), "it has an invalid annotation", False, id="bad annotation"
        ),
    ],
)
def test_a_virtual_service_may_be_bound_to_nothing(one: Any, reason: str, deliberate: bool) -> None:
    refusal = unbound(facts_of(one))
    assert refusal is not None
    assert refusal.reason.startswith(reason)
    assert refusal.deliberate is deliberate


@pytest.mark.parametrize("gateways", [["infra/main"], ["mesh", "infra/main"], ["a/b/c", "main"]], ids=str)
def test_a_virtual_service_that_names_a_gateway_may_be_bound(gateways: list[str]) -> None:
    assert unbound(facts_of(service("a.org", gateways=gateways))) is None
