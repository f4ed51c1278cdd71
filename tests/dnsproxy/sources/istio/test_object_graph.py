"""Which VirtualServices name which Gateway."""

from __future__ import annotations

from dnsproxy.sources.istio.facts import read_facts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.object_graph import ObjectGraph
from tests.dnsproxy.sources.istio.objects import gateway, service

MAIN = read_facts(ISTIO_GATEWAY, gateway("a.example.org"), most=None)
ONE = read_facts(VIRTUAL_SERVICE, service("a.example.org", gateways=["infra/main", "infra/other"]), most=None)
OTHER = read_facts(VIRTUAL_SERVICE, service("a.example.org", gateways=["infra/other"]), most=None)


def test_objects_are_found_by_kind_and_key() -> None:
    graph = ObjectGraph()
    assert graph.gateway("infra/main") is None
    assert graph.put(ISTIO_GATEWAY, "infra/main", MAIN)
    assert graph.gateway("infra/main") == MAIN
    assert graph.get(VIRTUAL_SERVICE, "infra/main") is None


def test_the_index_follows_the_gateways_that_are_named() -> None:
    graph = ObjectGraph()
    graph.put(VIRTUAL_SERVICE, "web/app", ONE)
    assert graph.bound_to("infra/main") == graph.bound_to("infra/other") == ["web/app"]
    graph.put(VIRTUAL_SERVICE, "web/app", OTHER)
    assert (graph.bound_to("infra/main"), graph.bound_to("infra/other")) == ([], ["web/app"])
    graph.put(VIRTUAL_SERVICE, "web/app", None)
    assert graph.bound_to("infra/other") == []
    assert graph.is_empty()


def test_only_a_change_is_one() -> None:
    graph = ObjectGraph()
    assert not graph.put(ISTIO_GATEWAY, "infra/main", None)
    assert graph.put(ISTIO_GATEWAY, "infra/main", MAIN)
    assert not graph.put(ISTIO_GATEWAY, "infra/main", read_facts(ISTIO_GATEWAY, gateway("a.example.org"), most=None))
    assert graph.put(ISTIO_GATEWAY, "infra/main", None)
    assert graph.is_empty()
