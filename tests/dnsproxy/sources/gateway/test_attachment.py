"""Which listeners a route attaches to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dnsproxy.sources.annotations import IGNORE, TARGET
from dnsproxy.sources.gateway.attachment import Parent, attach, find_parent
from dnsproxy.sources.gateway.facts import RouteFacts, read_facts
from dnsproxy.sources.gateway.kinds import GATEWAY, HTTP_ROUTE, LISTENER_SET, TLS_ROUTE, X_LISTENER_SET, Ref
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from dnsproxy.sources.refusals import Refusal
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.gateway.objects import (
    ALL_SETS,
    SELECTED,
    TO_GATEWAY,
    gateway,
    listener,
    listener_set,
    route,
)

MAIN, EXTRA = Ref(GATEWAY, "infra", "main"), Ref(LISTENER_SET, "web", "extra")


def state_of(*objects: Any, labels: Mapping[str, str] | None = None) -> ObjectGraph:
    """With `labels` on namespace web."""
    graph = ObjectGraph()
    for kind, one in objects:
        facts = read_facts(kind, one)
        graph.put(Ref(kind, facts.origin.namespace, facts.origin.name), facts)
    graph.put_labels("web", labels)
    return graph


def parent_of(*objects: Any, ref: Ref = EXTRA, labels: Mapping[str, str] | None = None) -> Parent:
    parent = find_parent(ref, state_of(*objects, labels=labels), classes=frozenset())
    assert isinstance(parent, Parent)
    return parent


def refusal_of(*objects: Any, ref: Ref = EXTRA, classes: tuple[str, ...] = (), **more: Any) -> Refusal:
    refusal = find_parent(ref, state_of(*objects, **more), classes=frozenset(classes))
    assert isinstance(refusal, Refusal)
    return refusal


OPEN = (GATEWAY, gateway(listener("a.example.org", "a"), allowedListeners=ALL_SETS))
SET = (LISTENER_SET, listener_set(listener("b.example.org", "b")))


def test_the_listeners_of_a_gateway_are_its_own_alone() -> None:
    """Those of its ListenerSets are reached through them (GEP-1713)."""
    parent = parent_of(OPEN, SET, ref=MAIN)
    assert [one.name for one in parent.listeners] == ["a"]


@pytest.mark.parametrize("classes", [(), ("public",), ("other", "public")], ids=len)
def test_a_listener_set_has_the_class_of_its_gateway(classes: tuple[str, ...]) -> None:
    parent = find_parent(EXTRA, state_of(OPEN, SET), classes=frozenset(classes))
    assert isinstance(parent, Parent)
    assert (parent.ref, parent.gateway.class_name) == (EXTRA, "public")
    assert [one.name for one in parent.listeners] == ["b"]


@pytest.mark.parametrize(
    ("gateway_target", "set_target", "expected", "chosen_in"),
    [
        (None, None, None, "infra"),
        ("192.0.2.1", None, "192.0.2.1", "infra"),
        (None, "status", "status", "web"),
        ("192.0.2.1", "192.0.2.2", "192.0.2.2", "web"),
    ],
)
def test_the_nearer_target_goes_first(gateway_target: Any, set_target: Any, expected: Any, chosen_in: str) -> None:
    marked = gateway(allowedListeners=ALL_SETS, annotations={TARGET: gateway_target})
    parent = parent_of((GATEWAY, marked), (LISTENER_SET, listener_set(annotations={TARGET: set_target})))
    assert (parent.target, parent.target_from) == (expected, chosen_in)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([OPEN], "ListenerSet web/extra does not exist", id="no such set"),
        pytest.param([SET], "ListenerSet web/extra: Gateway infra/main does not exist", id="no such Gateway"),
        pytest.param(
            [(X_LISTENER_SET, SET[1]), OPEN],
            "ListenerSet web/extra does not exist",
            id="its forerunner is another object",
        ),
        pytest.param([(GATEWAY, gateway()), SET], "Gateway infra/main refuses ListenerSet web/extra", id="by default"),
        pytest.param(
            [(GATEWAY, gateway(allowedListeners={"namespaces": {"from": "Same"}})), SET], "namespace web", id="Same"
        ),
        pytest.param([(GATEWAY, gateway(allowedListeners=SELECTED)), SET], "labels", id="labels unknown"),
        pytest.param(
            [OPEN, (LISTENER_SET, listener_set(parent={"name": "main", "kind": "Service", "group": ""}))],
            "has no Gateway as its parent",
            id="not a Gateway",
        ),
        pytest.param(
            [OPEN, (LISTENER_SET, Unreadable(ObjectMeta("extra", "web"), "x"))],
            "web/extra is unreadable",
            id="broken set",
        ),
        pytest.param(
            [(GATEWAY, Unreadable(ObjectMeta("main", "infra"), "x")), SET], "main is unreadable", id="broken Gateway"
        ),
        pytest.param(
            [(GATEWAY, gateway(allowedListeners=ALL_SETS, labels={TARGET: "?"})), SET],
            "invalid annotation",
            id="an annotation of the Gateway",
        ),
        pytest.param(
            [OPEN, (LISTENER_SET, listener_set(labels={IGNORE: "?"}))],
            "invalid annotation",
            id="an annotation of the set",
        ),
    ],
)
def test_a_set_without_a_gateway_has_a_reason(objects: list[Any], reason: str) -> None:
    refusal = refusal_of(*objects)
    assert reason in refusal.reason
    assert not refusal.deliberate


@pytest.mark.parametrize(
    ("objects", "classes", "reason"),
    [
        pytest.param([OPEN, SET], ("other",), "has class public, which --gateway-class excludes", id="class"),
        pytest.param([OPEN, SET], ("Public",), "has class public", id="case counts"),
        pytest.param(
            [(GATEWAY, gateway(allowedListeners=ALL_SETS, labels={IGNORE: "true"})), SET],
            (),
            "Gateway infra/main is ignored",
            id="ignored Gateway",
        ),
        pytest.param(
            [OPEN, (LISTENER_SET, listener_set(labels={IGNORE: "true"}))], (), "web/extra is ignored", id="ignored set"
        ),
    ],
)
def test_an_intended_exclusion_is_distinguished(objects: list[Any], classes: tuple[str, ...], reason: str) -> None:
    refusal = refusal_of(*objects, classes=classes)
    assert reason in refusal.reason
    assert refusal.deliberate


@pytest.mark.parametrize(("labels", "admitted"), [({"team": "web"}, True), ({"team": "api"}, False), ({}, False)])
def test_listener_sets_are_admitted_by_label(labels: Mapping[str, str], admitted: bool) -> None:
    graph = state_of((GATEWAY, gateway(allowedListeners=SELECTED)), SET, labels=labels)
    assert isinstance(find_parent(EXTRA, graph, classes=frozenset()), Parent) is admitted


DOORS = parent_of(
    (
        GATEWAY,
        gateway(
            listener("a.example.org", "a"),
            listener("b.example.org", "b", port=8443),
            listener("c.example.org", "c", protocol="TLS"),
            listener("d.example.org", "d", allowedRoutes=SELECTED),
            listener("e.example.org", "e", allowedRoutes=None),
            listener(None, "f", protocol="TCP", port=5432),
        ),
    ),
    ref=MAIN,
)


def attached(ref: dict[str, Any], *, kind: str = HTTP_ROUTE, place: str = "web/app", labels: Any = None) -> Any:
    facts = read_facts(kind, route(place=place, parents=[TO_GATEWAY | ref]))
    assert isinstance(facts, RouteFacts)
    found = attach(facts.origin, facts.parents[0], DOORS, labels=labels)
    return found if isinstance(found, Refusal) else [one.name for one in found]


@pytest.mark.parametrize(
    ("ref", "more", "expected"),
    [
        pytest.param({}, {}, ["a", "b"], id="all that take it"),
        pytest.param({"sectionName": "b"}, {}, ["b"], id="section"),
        pytest.param({"port": 443}, {}, ["a"], id="port"),
        pytest.param({"sectionName": "b", "port": 8443}, {}, ["b"], id="section and port"),
        pytest.param({}, {"labels": {"team": "web"}}, ["a", "b", "d"], id="by label"),
        pytest.param({}, {"labels": {"team": "api"}}, ["a", "b"], id="by other labels"),
        pytest.param({}, {"place": "infra/app"}, ["a", "b", "e"], id="of the Gateway's namespace"),
        pytest.param({}, {"kind": TLS_ROUTE}, ["c"], id="TLSRoute"),
    ],
)
def test_a_route_gets_to_the_listeners_that_take_it(ref: Any, more: Any, expected: list[str]) -> None:
    assert attached(ref, **more) == expected


@pytest.mark.parametrize(
    ("ref", "more", "reason"),
    [
        pytest.param({"sectionName": "x"}, {}, "Gateway infra/main has no listener 'x'", id="section"),
        pytest.param({"sectionName": "A"}, {}, "has no listener 'A'", id="case counts"),
        pytest.param({"port": 80}, {}, "has no listener on port 80", id="port"),
        pytest.param({"sectionName": "a", "port": 8443}, {}, "no listener 'a' on port 8443", id="another's port"),
        pytest.param({"sectionName": "c"}, {}, "has no listener 'c' that takes HTTPRoutes", id="TLS listener"),
        pytest.param({"sectionName": "a"}, {"kind": TLS_ROUTE}, "that takes TLSRoutes", id="TLSRoute on HTTPS"),
        pytest.param({"port": 5432}, {}, "that takes HTTPRoutes", id="TCP listener"),
        pytest.param({"sectionName": "e"}, {}, "listener 'e' of Gateway infra/main: it does not admit", id="namespace"),
        pytest.param({"sectionName": "d"}, {}, "are not known", id="labels unknown"),
        pytest.param({"sectionName": "d"}, {"labels": {}}, "its selector does not match", id="no label"),
        pytest.param(
            {"sectionName": "d"},
            {"labels": {"team": "api"}, "place": "infra/app"},
            "its selector",
            id="its own namespace",
        ),
    ],
)
def test_a_route_that_no_listener_accepts_has_a_reason(ref: Any, more: Any, reason: str) -> None:
    refusal = attached(ref, **more)
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert not refusal.deliberate


def test_same_means_the_namespace_of_the_listener_set() -> None:
    """Not that of its Gateway."""
    parent = parent_of(OPEN, (LISTENER_SET, listener_set(listener("b.example.org", "b", allowedRoutes=None))))
    for place, admitted in (("web/app", True), ("infra/app", False)):
        facts = read_facts(HTTP_ROUTE, route(place=place))
        assert isinstance(facts, RouteFacts)
        found = attach(facts.origin, facts.parents[0], parent, labels=None)
        assert isinstance(found, tuple) is admitted
