"""What is kept of an object."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.sources.annotations import HOSTNAME, IGNORE
from dnsproxy.sources.istio.facts import (
    Facts,
    GatewayFacts,
    VirtualServiceFacts,
    read_facts,
    resolve_gateway,
)
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.structs import Gateway, VirtualService
from dnsproxy.sources.unreadable import UnreadableFacts
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.istio.objects import gateway, service


def facts_of(one: Any, most: int | None = None) -> Facts:
    return read_facts(VIRTUAL_SERVICE if isinstance(one, VirtualService) else ISTIO_GATEWAY, one, most=most)


def read(*hosts: Any, **more: Any) -> VirtualServiceFacts:
    facts = facts_of(service(*hosts, **more))
    assert isinstance(facts, VirtualServiceFacts)
    return facts


def read_gateway(*hosts: Any, **more: Any) -> GatewayFacts:
    facts = facts_of(gateway(*hosts, **more))
    assert isinstance(facts, GatewayFacts)
    return facts


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"istio": "ingressgateway"}, "istio=ingressgateway", id="one label"),
        pytest.param({"istio": "x", "app": "y"}, "app=y,istio=x", id="in the order of the keys"),
        pytest.param({"example.org/a": ""}, "example.org/a=", id="empty value"),
        pytest.param({}, "", id="empty"),
    ],
)
def test_the_class_is_the_selector(selector: dict[str, str], expected: str) -> None:
    assert read_gateway(selector=selector).class_name == expected


def test_a_gateway_without_a_selector_has_no_class() -> None:
    assert read_gateway(selector=None).class_name == ""
    assert facts_of(Gateway(gateway().metadata, None)) == read_gateway(selector=None)


def test_a_selector_that_each_claim_would_keep_has_a_limit() -> None:
    facts = facts_of(gateway("a.example.org", selector={"a": "x" * 1_000_000}))
    assert isinstance(facts, UnreadableFacts)
    assert facts.reason.startswith("its selector 'a=xxx")
    assert facts.reason.endswith("is longer than 1000 characters")
    assert len(facts.reason) < 200


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("main", "web/main", id="in its own namespace"),
        pytest.param("infra/main", "infra/main", id="in another"),
        pytest.param("./main", "web/main", id="dot"),
        pytest.param("infra/main.public", "infra/main.public", id="a name with a dot"),
        pytest.param("main.infra.svc.cluster.local", "infra/main", id="earlier form"),
        pytest.param("main.infra", "infra/main", id="earlier form, short"),
    ],
)
def test_a_gateway_is_found_as_istio_finds_it(name: str, expected: str) -> None:
    assert resolve_gateway(name, "web") == expected
    facts = read("a.example.org", gateways=[name, "mesh", name])
    assert (facts.gateways, facts.in_mesh, facts.faults) == ((expected,), True, ())


@pytest.mark.parametrize("name", ["a/b/c", "/a", "infra/", "Infra/main", "in fra/main", "infra/\x1b[m", "x" * 300, "/"])
def test_an_invalid_gateway_is_quoted_and_harms_no_other(name: str) -> None:
    facts = read("a.example.org", gateways=[name, "infra/main"])
    assert (facts.gateways, facts.in_mesh) == (("infra/main",), False)
    (fault,) = facts.faults
    assert fault.startswith("gateways: ")
    assert fault.isprintable()


def test_gateways_beyond_the_limit_are_left_out() -> None:
    facts = read("a.example.org", gateways=[f"infra/g{number}" for number in range(100_000)])
    assert len(facts.gateways) == 32
    assert facts.faults == ("gateways: it has more than 32: the others are left out",)
    bad = read("a.example.org", gateways=[f"a/b/{number}" for number in range(100_000)])
    assert len(bad.faults) == 33


@pytest.mark.parametrize("gateways", [None, [], [None], [""], ["mesh"], ["mesh", "mesh"]], ids=repr)
def test_without_a_gateway_it_is_for_the_mesh_alone(gateways: Any) -> None:
    facts = read("a.example.org", gateways=gateways)
    assert (facts.gateways, facts.in_mesh, facts.faults) == ((), True, ())


@pytest.mark.parametrize(
    ("export_to", "expected"),
    [
        pytest.param(None, {"infra", "web"}, id="all by default"),
        pytest.param([], {"infra", "web"}, id="empty"),
        pytest.param([None], {"infra", "web"}, id="null"),
        pytest.param(["*"], {"infra", "web"}, id="all"),
        pytest.param([".", "*"], {"infra", "web"}, id="all and its own"),
        pytest.param(["~", "*"], {"infra", "web"}, id="all before none"),
        pytest.param(["."], {"web"}, id="its own"),
        pytest.param(["web"], {"web"}, id="its own by name"),
        pytest.param(["infra"], {"infra"}, id="another"),
        pytest.param(["infra", ".", "shop"], {"infra", "web"}, id="several"),
        pytest.param(["~"], set(), id="none"),
        pytest.param(["~", "infra"], set(), id="none before another"),
        pytest.param(["shop"], set(), id="a stranger"),
        pytest.param([""], set(), id="empty text"),
    ],
)
def test_a_virtual_service_is_exported_as_it_says(export_to: Any, expected: set[str]) -> None:
    facts = read("a.example.org", gateways=["infra/main", "web/own"], export_to=export_to)
    assert facts.exported_to == expected


def test_hosts_are_names_short_names_or_all() -> None:
    facts = read("A.Example.org", "reviews", "*", "*.example.org", "a.example.org")
    assert facts.hosts == ("a.example.org", "*.example.org")
    assert (facts.short_names, facts.takes_all, facts.is_delegate, facts.faults) == (("reviews",), True, False, ())


@pytest.mark.parametrize("bad", ["192.0.2.1", "2001:db8::1", "*a.example.org", "a..org", "", None, "a/b.example.org"])
def test_an_invalid_host_harms_no_other(bad: Any) -> None:
    facts = read(bad, "a.example.org")
    assert facts.hosts == ("a.example.org",)
    assert len(facts.faults) == 1
    assert not read(bad).is_delegate


@pytest.mark.parametrize("hosts", [(), None], ids=["empty", "absent"])
def test_without_hosts_it_is_a_delegate(hosts: Any) -> None:
    assert read(*(hosts or ())).is_delegate
    assert facts_of(VirtualService(service().metadata, None)) == read(gateways=None)


def test_hosts_beyond_the_limit_are_not_read() -> None:
    facts = facts_of(service(*(f"h{number}.example.org" for number in range(100_000))), most=2)
    assert isinstance(facts, VirtualServiceFacts)
    assert facts.hosts == ("h0.example.org", "h1.example.org")
    assert facts.faults == ("it claims more than 2 names (--max-names-per-object): the others are left out",)


def test_annotations_and_their_faults_are_kept() -> None:
    for facts in (
        read("a.example.org", annotations={HOSTNAME: "b.example.org,?", IGNORE: "x"}),
        read_gateway("a.example.org", annotations={HOSTNAME: "b.example.org,?", IGNORE: "x"}),
    ):
        assert facts.annotations.hostnames == ("b.example.org",)
        assert len(facts.faults) == 2


def test_an_unreadable_object_has_its_reason() -> None:
    facts = read_facts(VIRTUAL_SERVICE, Unreadable(ObjectMeta("app", "web"), "Expected `str`"), most=None)
    assert isinstance(facts, UnreadableFacts)
    assert (str(facts.origin), facts.reason) == ("VirtualService web/app", "unreadable: Expected `str`")


def test_what_does_not_affect_names_does_not_change_the_facts() -> None:
    assert read("a.example.org", export_to=["*"]) == read("a.example.org", resourceVersion="2")
    assert read("a.example.org", gateways=["infra/main"]) == read("a.example.org", gateways=["infra/main"] * 3)
    assert read_gateway("*/a.example.org") == read_gateway("a.example.org", resourceVersion="2")


def test_the_key_of_a_gateway_is_no_key_of_the_gateway_api() -> None:
    assert read_gateway(place="infra/main").key == "IstioGateway infra/main"
