"""From changes of objects of described kinds to changes of claims."""

from __future__ import annotations

import gc
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.described.table import KINDS, SOURCES, kinds_of
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.described.objects import ADMITTED, Fed, decode, http_proxy, ingress_class, kind_named

CONTOUR: Final = "projectcontour.io/ingress-controller"


def route(host: str, *routers: str) -> Any:
    status = {"ingress": [{"routerName": router, "conditions": [ADMITTED]} for router in routers]}
    return decode(kind_named("Route"), {"host": host}, status)


def test_claims_follow_their_object() -> None:
    fed = Fed("HTTPProxy")
    assert fed.source.change("HTTPProxy", {"web/shop": http_proxy("a.example.org")}) == {"a.example.org"}
    assert fed.source.change("HTTPProxy", {"web/shop": http_proxy("b.example.org")}) == {
        "a.example.org",
        "b.example.org",
    }
    assert fed.source.change("HTTPProxy", {"web/shop": http_proxy("b.example.org", current="orphaned")}) == {
        "b.example.org"
    }
    assert fed.names() == {}
    fed.source.change("HTTPProxy", {"web/shop": http_proxy("b.example.org")})
    assert fed.source.change("HTTPProxy", {"web/shop": None}) == {"b.example.org"}
    assert (fed.names(), fed.reasons()) == ({}, [])


def test_an_unreadable_object_rejects_only_itself() -> None:
    fed = Fed("HTTPProxy")
    unreadable = Unreadable(ObjectMeta("odd", "web"), "metadata.labels: a list")
    fed.source.change("HTTPProxy", {"web/odd": unreadable, "web/shop": http_proxy("a.example.org")})
    assert list(fed.names()) == ["a.example.org"]
    assert fed.reasons() == ["unreadable: metadata.labels: a list"]


@pytest.mark.parametrize(
    ("metadata", "spec", "expected"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({}, {"ingressClassName": "field"}, "field", id="the field"),
        pytest.param({"kubernetes.io/ingress.class": "old"}, {"ingressClassName": "field"}, "old",
                     id="before the field"),
        pytest.param({"kubernetes.io/ingress.class": "old", "projectcontour.io/ingress.class": "own"}, {}, "own",
                     id="Contour's own before all"),
        pytest.param({"kubernetes.io/ingress.class": "old", "projectcontour.io/ingress.class": ""},
                     {"ingressClassName": "field"}, "field", id="Contour's own also if it is empty"),
        pytest.param({"kubernetes.io/ingress.class": ""}, {"ingressClassName": 7}, None, id="of wrong types"),
    ],
)  # fmt: skip
def test_contour_finds_the_class_where_it_looks(metadata: dict[str, str], spec: Any, expected: str | None) -> None:
    fed = Fed("HTTPProxy")
    whole = {"virtualhost": {"fqdn": "a.example.org"}} | spec
    one = decode(kind_named("HTTPProxy"), whole, {"currentStatus": "valid"}, annotations=metadata)
    fed.source.change("HTTPProxy", {"web/shop": one})
    assert fed.names() == {"a.example.org": expected}


def test_objects_without_a_class_have_that_of_their_controller() -> None:
    """Followed as the classes come and go, and only if there is no doubt which."""
    fed = Fed("HTTPProxy")
    fed.source.change("HTTPProxy", {"web/shop": http_proxy("a.example.org")})
    assert fed.source.change("IngressClass", {"nginx": ingress_class("nginx", "k8s.io/ingress-nginx")}) == frozenset()
    assert fed.source.change("IngressClass", {"contour": ingress_class("contour", CONTOUR)}) == {"a.example.org"}
    assert fed.names() == {"a.example.org": "contour"}
    fed.source.change("IngressClass", {"internal": ingress_class("internal", CONTOUR)})
    assert fed.names() == {"a.example.org": None}
    fed.source.change("IngressClass", {"internal": ingress_class("internal", CONTOUR, default=True)})
    assert fed.names() == {"a.example.org": "internal"}
    fed.source.change("IngressClass", {"internal": None, "odd": Unreadable(ObjectMeta("odd"), "x")})
    assert fed.names() == {"a.example.org": "contour"}
    fed.source.change("HTTPProxy", {"web/shop": None})
    assert fed.source.change("IngressClass", {"contour": None}) == frozenset()


@pytest.mark.skipif(gc.is_tracked({"a": None}), reason="this Python walks through every dict")
def test_objects_that_name_no_class_are_no_work_for_the_garbage_collector() -> None:
    """Else it delays answers by 15 ms, again and again, while 20,000 of them are read."""
    fed = Fed("HTTPProxy")
    count = 1000
    changes = {f"web/{number}": http_proxy(f"a{number}.example.org", key=f"web/{number}") for number in range(count)}
    gc.collect()
    before = len(gc.get_objects())
    fed.source.change("HTTPProxy", changes)
    gc.collect()
    assert len(gc.get_objects()) - before < count / 2


def test_a_class_that_comes_reaches_only_the_kinds_of_its_controller() -> None:
    fed = Fed("HTTPProxy", "IngressRoute")
    route = decode(kind_named("IngressRoute"), {"routes": [{"match": "Host(`b.example.org`)"}]})
    fed.source.change("HTTPProxy", {"web/shop": http_proxy("a.example.org")})
    fed.source.change("IngressRoute", {"web/shop": route})
    assert fed.source.change("IngressClass", {"contour": ingress_class("contour", CONTOUR)}) == {"a.example.org"}
    assert fed.names() == {"a.example.org": "contour", "b.example.org": None}


def test_a_filter_takes_only_its_classes() -> None:
    fed = Fed("HTTPProxy", classes=("internal",))
    one = http_proxy("a.example.org", annotations={"kubernetes.io/ingress.class": "public"})
    other = http_proxy("b.example.org", key="web/b", annotations={"kubernetes.io/ingress.class": "internal"})
    fed.source.change("HTTPProxy", {"web/a": one, "web/b": other, "web/c": http_proxy("c.example.org", key="web/c")})
    assert fed.names() == {"b.example.org": "internal"}
    fed.source.change("IngressClass", {"internal": ingress_class("internal", CONTOUR)})
    assert fed.names() == {"b.example.org": "internal", "c.example.org": "internal"}


def test_a_route_is_of_the_routers_that_admit_it() -> None:
    fed = Fed("Route", classes=("inner", "outer"))
    fed.source.change("Route", {"web/a": route("a.example.org", "default", "outer", "inner")})
    fed.source.change("Route", {"web/b": route("b.example.org", "default")})
    assert fed.names() == {"a.example.org": "outer"}


def test_of_a_large_object_only_the_first_hosts_are_read() -> None:
    fed = Fed("crd:sites.example.org:spec.hosts", most=2)
    one = decode(kind_named("crd:sites.example.org:spec.hosts"), {"hosts": [f"{n}.example.org" for n in range(9)]})
    fed.source.change("sites.example.org", {"web/shop": one})
    assert list(fed.names()) == ["0.example.org", "1.example.org"]
    assert "--max-names-per-object" in fed.reasons()[0]


CLASSED: Final = http_proxy("b.example.org", annotations={"kubernetes.io/ingress.class": "x"})


@given(st.permutations([("HTTPProxy", "web/a", http_proxy("a.example.org")),
                        ("HTTPProxy", "web/b", CLASSED),
                        ("IngressClass", "contour", ingress_class("contour", CONTOUR)),
                        ("IngressClass", "nginx", ingress_class("nginx", "k8s.io/ingress-nginx")),
                        ("IngressClass", "second", ingress_class("second", CONTOUR, default=True)),
                        ("HTTPProxy", "web/a", http_proxy("a.example.org"))]))  # fmt: skip
def test_the_order_of_changes_does_not_matter(steps: list[Any]) -> None:
    fed = Fed("HTTPProxy")
    for kind, key, one in steps:
        fed.source.change(kind, {key: one})
    assert fed.names() == {"a.example.org": "second", "b.example.org": "x"}


def test_each_kind_of_the_table_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert sorted(kind.name for source in SOURCES for kind in kinds_of(source)) == sorted(kind.name for kind in KINDS)
