"""The facts of an object."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.annotations import IGNORE, TARGET
from dnsproxy.sources.gateway.facts import (
    GatewayFacts,
    ListenerSetFacts,
    ParentRef,
    RouteFacts,
    parents_of,
    read_facts,
)
from dnsproxy.sources.gateway.kinds import (
    GATEWAY,
    GROUP,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    TLS_ROUTE,
    X_GROUP,
    X_LISTENER_SET,
    Ref,
)
from dnsproxy.sources.unreadable import UnreadableFacts
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.gateway.objects import (
    ALL_SETS,
    NEW,
    OLD,
    TO_BACKEND,
    TO_GATEWAY,
    TO_HTTPS,
    TO_SET,
    gateway,
    listener,
    listener_set,
    parent_ref,
    route,
)

MAIN = Ref(GATEWAY, "infra", "main")


def read_gateway(*listeners: Any, **more: Any) -> GatewayFacts:
    facts = read_facts(GATEWAY, gateway(*listeners, **more))
    assert isinstance(facts, GatewayFacts)
    return facts


def read_set(**more: Any) -> ListenerSetFacts:
    facts = read_facts(LISTENER_SET, listener_set(listener("a.example.org"), **more))
    assert isinstance(facts, ListenerSetFacts)
    return facts


def read_route(*hostnames: Any, **more: Any) -> RouteFacts:
    facts = read_facts(HTTP_ROUTE, route(*hostnames, **more))
    assert isinstance(facts, RouteFacts)
    return facts


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        pytest.param({"name": "main"}, ParentRef(Ref(GATEWAY, "web", "main")), id="all defaults"),
        pytest.param({"name": "main", "namespace": "infra"}, ParentRef(MAIN), id="namespace"),
        pytest.param({"name": "main", "namespace": ""}, ParentRef(Ref(GATEWAY, "web", "main")), id="empty namespace"),
        pytest.param(TO_GATEWAY | {"group": GROUP}, ParentRef(MAIN), id="all named"),
        pytest.param(
            TO_GATEWAY | {"sectionName": "a", "port": 8443}, ParentRef(MAIN, "a", 8443), id="section and port"
        ),
        pytest.param(TO_GATEWAY | {"sectionName": "", "port": 0}, ParentRef(MAIN), id="empty section, port 0"),
        pytest.param(TO_SET, ParentRef(Ref(LISTENER_SET, "web", "extra")), id="ListenerSet"),
        pytest.param(
            parent_ref("web/extra", X_LISTENER_SET), ParentRef(Ref(X_LISTENER_SET, "web", "extra")), id="XListenerSet"
        ),
        pytest.param(TO_GATEWAY | {"kind": "Service", "group": ""}, None, id="Service of a mesh"),
        pytest.param(TO_GATEWAY | {"kind": "Service"}, None, id="Service, group forgotten"),
        pytest.param(TO_GATEWAY | {"group": ""}, None, id="Gateway of the core group"),
        pytest.param(TO_GATEWAY | {"group": X_GROUP}, None, id="Gateway of another group"),
        pytest.param(TO_SET | {"group": X_GROUP}, None, id="ListenerSet of the other group"),
        pytest.param(TO_SET | {"kind": X_LISTENER_SET}, None, id="XListenerSet of the other group"),
        pytest.param(TO_GATEWAY | {"kind": ""}, None, id="empty kind"),
        pytest.param(TO_GATEWAY | {"kind": "gateway"}, None, id="kind in lower case"),
        pytest.param(TO_GATEWAY | {"kind": HTTP_ROUTE}, None, id="a route"),
        pytest.param(None, None, id="null"),
    ],
)
def test_parents_are_gateways_and_listener_sets(ref: Any, expected: ParentRef | None) -> None:
    facts = read_route("app.example.org", parents=[ref])
    assert facts.parents == (() if expected is None else (expected,))
    assert facts.faults == ()
    assert list(parents_of(facts)) == [one.parent for one in facts.parents]


def test_parents_keep_their_order_each_once() -> None:
    facts = read_route(parents=[TO_SET, TO_GATEWAY, TO_SET, TO_GATEWAY | {"sectionName": "a"}])
    extra = Ref(LISTENER_SET, "web", "extra")
    assert facts.parents == (ParentRef(extra), ParentRef(MAIN), ParentRef(MAIN, "a"))


@pytest.mark.parametrize(
    ("hostnames", "expected", "faults"),
    [
        pytest.param([], None, 0, id="none: those of the listeners"),
        pytest.param(["B.example.org", "a.example.org."], ("b.example.org", "a.example.org"), 0, id="normal form"),
        pytest.param(["a.example.org", "A.example.org"], ("a.example.org",), 0, id="each once"),
        pytest.param(["*.example.org"], ("*.example.org",), 0, id="wildcard"),
        pytest.param(["*", "a.example.org", "192.0.2.1"], ("a.example.org",), 2, id="bad ones harm no other"),
        pytest.param(["*"], (), 1, id="only bad ones are not none"),
        pytest.param([""], (), 1, id="empty is not none"),
        pytest.param([None], (), 1, id="null is not none"),
    ],
)
def test_hostnames_of_a_route(hostnames: list[Any], expected: tuple[str, ...] | None, faults: int) -> None:
    """A route with only invalid hostnames must not claim every name of its listeners instead."""
    facts = read_route(*hostnames)
    assert facts.hostnames == expected
    assert len(facts.faults) == faults


def test_route_without_spec_has_nothing() -> None:
    bare = route()
    facts = read_facts(TLS_ROUTE, type(bare)(bare.metadata))
    assert isinstance(facts, RouteFacts)
    assert (facts.parents, facts.hostnames) == ((), None)


def test_an_origin_has_the_object_and_its_age() -> None:
    assert read_route(created=NEW).origin == Origin(HTTP_ROUTE, "app", "web", NEW)
    assert read_gateway().origin == Origin(GATEWAY, "main", "infra", OLD)
    assert read_route(created=None).origin.created == ""


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (None, ()),
        ([], ()),
        ([{"value": "192.0.2.1"}], ("192.0.2.1",)),
        ([{"type": "IPAddress", "value": "2001:DB8::1"}, {"type": "Hostname", "value": "LB.example.org."}],
         ("2001:db8::1", "lb.example.org")),
        ([{"value": "192.0.2.1"}, {"value": "192.0.2.1"}], ("192.0.2.1",)),
        ([None, {}, {"value": ""}, {"type": "IPAddress"}, {"type": "Hostname"}], ()),
        ([{"value": "lb.example.org"}, {"type": "Hostname", "value": "192.0.2.1"}], ()),
        ([{"type": "example.org/name", "value": "192.0.2.1"}, {"value": "0.0.0.0"}], ()),
        ([{"value": "fe80::1"}, {"value": "255.255.255.255"}, {"value": "::ffff:192.0.2.1"}], ()),
    ],
    ids=["null", "empty", "default", "both types", "twice", "nothing in them", "the other", "unusable", "unreachable"],
)  # fmt: skip
def test_status_keeps_addresses_and_hostnames(addresses: Any, expected: tuple[str, ...]) -> None:
    assert read_gateway(status={"addresses": addresses}).status == expected


@pytest.mark.parametrize(
    "allowed", [{"from": "all"}, {"from": "Selector"}, {"from": "Selector", "selector": None}], ids=str
)
def test_invalid_allowed_listeners_admit_no_listener_set(allowed: Any) -> None:
    facts = read_gateway(listener("a.example.org"), allowedListeners={"namespaces": allowed})
    assert facts.listener_sets.refusal("infra", home="infra", labels={}) is not None
    assert [fault.partition(":")[0] for fault in facts.faults] == ["allowedListeners"]
    assert len(facts.listeners) == 1


def test_allowed_listeners_are_read() -> None:
    assert read_gateway(allowedListeners=ALL_SETS).listener_sets.scope == "All"
    assert read_gateway(allowedListeners={"namespaces": None}).listener_sets.scope == "None"


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        ({"name": "main", "namespace": "infra"}, MAIN),
        ({"name": "main"}, Ref(GATEWAY, "web", "main")),
        (TO_SET, None),
        ({"name": "main", "kind": "Service", "group": ""}, None),
    ],
    ids=["of another namespace", "of its own", "another set", "Service"],
)
def test_parent_of_a_listener_set_is_a_gateway(parent: Any, expected: Ref | None) -> None:
    facts = read_set(parent=parent)
    assert facts.gateway == expected
    assert list(parents_of(facts)) == ([expected] if expected else [])


REFUSED: Final = {"type": "Accepted", "status": "False", "reason": "ListenersNotValid"}
PROGRAMMED: Final = {"type": "Programmed", "status": "True"}


@pytest.mark.parametrize(
    ("status", "accepted"),
    [
        pytest.param(None, False, id="no status"),
        pytest.param({"conditions": None}, False, id="no conditions"),
        pytest.param({"conditions": [None, {}]}, False, id="empty conditions"),
        pytest.param(
            {"conditions": [{"type": kind, "status": "Unknown"} for kind in ("Accepted", "Programmed")]},
            False,
            id="the default of the definitions",
        ),
        pytest.param({"conditions": [{"type": "Accepted", "status": "False"}]}, False, id="refused"),
        pytest.param({"conditions": [{"type": "Accepted", "status": "true"}]}, False, id="a word in lower case"),
        pytest.param({"conditions": [{"type": "Seen", "status": "True"}]}, False, id="another condition"),
        pytest.param({"addresses": [{"value": "?"}]}, False, id="no readable address"),
        pytest.param({"conditions": [{"type": "Accepted", "status": "True"}]}, True, id="accepted"),
        pytest.param({"conditions": [{"type": "Scheduled", "status": "True"}]}, True, id="as in v1alpha2"),
        pytest.param({"conditions": [None, {"type": "Programmed", "status": "True"}]}, True, id="programmed"),
        pytest.param({"addresses": [{"value": "192.0.2.1"}]}, True, id="an address"),
        pytest.param({"listeners": None}, False, id="no listeners"),
        pytest.param({"listeners": [None, {}, {"conditions": None}]}, False, id="listeners without conditions"),
        pytest.param({"listeners": [{"conditions": [REFUSED]}]}, False, id="every listener refused"),
        pytest.param(
            {"conditions": [REFUSED], "listeners": [{"conditions": [REFUSED]}, {"conditions": [None, PROGRAMMED]}]},
            True,
            id="refused because of one listener, as by Traefik",
        ),
    ],
)
def test_only_the_word_of_a_controller_makes_a_gateway_accepted(status: Any, accepted: bool) -> None:
    assert read_gateway(status=status).accepted is accepted


@pytest.mark.parametrize("annotations", [{IGNORE: "yes"}, {TARGET: "?"}])
def test_annotations_and_their_faults_are_kept(annotations: dict[str, str]) -> None:
    for facts in (read_gateway(annotations=annotations), read_set(annotations=annotations)):
        assert facts.faults == facts.annotations.faults != ()
    assert read_route("a", annotations=annotations).faults != ()
    assert read_route("a", labels={IGNORE: "true"}).annotations.ignored


def test_unreadable_object_keeps_its_name_and_fault() -> None:
    facts = read_facts(HTTP_ROUTE, Unreadable(ObjectMeta("app", "web", creation_timestamp=OLD), "Expected `str`"))
    assert facts == UnreadableFacts(Origin(HTTP_ROUTE, "app", "web", OLD), "unreadable: Expected `str`")
    assert list(parents_of(facts)) == []


def test_an_object_without_namespace_is_read_all_the_same() -> None:
    assert read_route("a.example.org", place="app").origin == Origin(HTTP_ROUTE, "app", "", OLD)


def test_what_does_not_touch_names_gives_equal_facts() -> None:
    """Such as a resource version, conditions, counts, other labels."""
    one = gateway(listener("a.example.org"), status={"addresses": [{"value": "192.0.2.1"}]}, labels={"a": "b"})
    status = {"addresses": [{"value": "192.0.2.1"}], "listeners": [{"name": "https", "attachedRoutes": 7}]}
    assert read_facts(GATEWAY, one) == read_gateway(listener("a.example.org"), status=status)
    assert read_route("a.example.org") == read_route("A.example.org", annotations={"other": "x"})
    assert read_route("a.example.org", rules=[TO_BACKEND]) == read_route("a.example.org", rules=[TO_BACKEND, TO_HTTPS])


def test_only_an_http_route_is_one_that_only_redirects() -> None:
    """The other kinds have no redirects, so a filter of that name is none."""
    assert read_route(rules=[TO_HTTPS]) != read_route(rules=[TO_BACKEND])
    for kind in (GRPC_ROUTE, TLS_ROUTE):
        assert read_facts(kind, route(rules=[TO_HTTPS])) == read_facts(kind, route())
