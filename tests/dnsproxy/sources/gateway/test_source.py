"""From changes of objects to changes of claims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.sources.gateway.kinds import GATEWAY, HTTP_ROUTE, LISTENER_SET, TLS_ROUTE, X_LISTENER_SET
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.settings import GatewayOptions
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.gateway.histories import Key, Step, histories, hostnames, own_annotations
from tests.dnsproxy.sources.gateway.objects import (
    ACCEPTED,
    ALL_SETS,
    NEW,
    SELECTED,
    TO_HTTPS,
    TO_SET,
    gateway,
    listener,
    listener_set,
    namespace,
    parent_ref,
    route,
)
from tests.dnsproxy.sources.gateway.specification import name_stands_in, served_names


class Fed:
    """A source and the store it feeds."""

    def __init__(self, *classes: str) -> None:
        self.store = ClaimStore()
        self.source = GatewaySource(self.store, options=GatewayOptions(frozenset(classes)))

    def change(self, key: Key, one: Any) -> None:
        kind, place = key
        if kind:
            self.source.change(kind, {place: one})
        else:
            self.source.change("Namespace", {place: one})

    def settle(self, slice_size: int = 1000) -> set[str]:
        touched: set[str] = set()
        while not self.source.is_settled:
            touched |= self.source.settle(slice_size)
        return touched

    def tell(self, *steps: Step) -> set[str]:
        for step in steps:
            self.change(*step)
        return self.settle()

    def names(self, *, routed: bool = True) -> set[str]:
        return {claim.hostname for claim in self.store.claims() if claim.terms.routed is routed}

    def told(self) -> tuple[set[Claim], set[Rejection]]:
        return set(self.store.claims()), set(self.store.rejections())


MAIN, EXTRA, APP = (GATEWAY, "infra/main"), (LISTENER_SET, "web/extra"), (HTTP_ROUTE, "web/app")


def test_objects_come_change_and_go() -> None:
    """The touched hostnames are reported each time."""
    fed = Fed()
    assert fed.tell((APP, route("a.org"))) == set()
    assert fed.tell((MAIN, gateway(listener()))) == {"a.org"}
    assert fed.tell((APP, route("b.org"))) == {"a.org", "b.org"}
    assert fed.tell((APP, route("b.org", created=NEW))) == {"b.org"}
    assert fed.tell((MAIN, None)) == {"b.org"}
    assert fed.tell((MAIN, gateway(listener("b.org")))) == {"b.org"}
    assert fed.tell((APP, None)) == {"b.org"}
    assert fed.names() == set()
    assert fed.names(routed=False) == {"b.org"}


def test_a_status_without_effect_on_names_costs_nothing() -> None:
    """Each attached route changes its Gateway's status: evaluating all routes again would never end."""
    fed = Fed()
    fed.tell((MAIN, gateway(listener())), (APP, route("a.org")))
    version = fed.store.version
    fed.change(MAIN, gateway(listener(), status=ACCEPTED | {"listeners": [{"name": "https", "attachedRoutes": 1}]}))
    assert fed.source.is_settled
    assert fed.tell((MAIN, gateway(listener(), status={"addresses": [{"value": "192.0.2.1"}]}))) == {"a.org"}
    assert fed.store.version > version


def test_a_change_touches_only_what_depends_on_it() -> None:
    fed = Fed()
    other = parent_ref("infra/other")
    fed.tell(
        (MAIN, gateway(listener(), allowedListeners=ALL_SETS)),
        ((GATEWAY, "infra/other"), gateway(listener(), place="infra/other")),
        (EXTRA, listener_set(listener())),
        (APP, route("a.org")),
        ((HTTP_ROUTE, "web/b"), route("b.org", place="web/b", parents=[TO_SET])),
        ((HTTP_ROUTE, "web/c"), route("c.org", place="web/c", parents=[other])),
    )
    assert fed.tell((MAIN, gateway(listener(), class_name="x", allowedListeners=ALL_SETS))) == {"a.org", "b.org"}
    assert fed.tell((EXTRA, listener_set(listener("b.org")))) == {"b.org"}
    assert fed.tell((("", "web"), namespace("web", team="api"))) == set()


def test_a_listener_set_goes_with_its_gateway() -> None:
    fed = Fed("public")
    steps = (EXTRA, listener_set(listener("b.org"))), (APP, route(parents=[TO_SET]))
    fed.tell(*steps, (MAIN, gateway(allowedListeners=ALL_SETS)))
    assert fed.names() == fed.names(routed=False) == {"b.org"}
    for lost in (
        None,
        gateway(),
        gateway(allowedListeners=ALL_SETS, class_name="inner"),
        Unreadable(ObjectMeta("x"), "?"),
    ):
        assert fed.tell((MAIN, lost)) == {"b.org"}
        assert list(fed.store.claims()) == []
        assert fed.tell((MAIN, gateway(allowedListeners=ALL_SETS))) == {"b.org"}


def test_a_label_of_a_namespace_lets_its_routes_in_and_out() -> None:
    fed = Fed()
    fed.tell((MAIN, gateway(listener(allowedRoutes=SELECTED))), (APP, route("a.org")))
    assert fed.names() == set()
    assert fed.tell((("", "web"), namespace("web", team="web"))) == {"a.org"}
    assert fed.tell((("", "web"), namespace("web", team="web", other="x"))) == set()
    assert fed.tell((("", "web"), namespace("web"))) == {"a.org"}
    assert fed.tell((("", "web"), namespace("web", team="web"))) == {"a.org"}
    assert fed.tell((("", "web"), Unreadable(ObjectMeta("web"), "?"))) == {"a.org"}
    assert fed.names() == set()


def test_a_label_of_a_namespace_lets_its_listener_sets_in_and_what_is_at_them() -> None:
    fed = Fed()
    at_set = route("a.org", place="shop/app", parents=[TO_SET])
    fed.tell(
        (MAIN, gateway(allowedListeners=SELECTED)),
        (EXTRA, listener_set(listener())),
        ((HTTP_ROUTE, "shop/app"), at_set),
    )
    assert fed.tell((("", "web"), namespace("web", team="web"))) == {"a.org"}
    assert fed.tell((("", "web"), None)) == {"a.org"}


def test_an_unreadable_object_harms_only_itself() -> None:
    fed = Fed()
    fed.tell((MAIN, gateway(listener())), (APP, route("a.org")), ((HTTP_ROUTE, "web/b"), route("b.org", place="web/b")))
    assert fed.tell((APP, Unreadable(ObjectMeta("app", "web"), "Expected `str`"))) == {"a.org"}
    assert fed.names() == {"b.org"}
    assert [str(one.origin) for one in fed.store.rejections()] == ["HTTPRoute web/app"]
    assert fed.tell((APP, route("a.org"))) == {"a.org"}
    assert list(fed.store.rejections()) == []


def test_kinds_of_one_name_are_different_objects() -> None:
    fed = Fed()
    tls = listener("*.org", "tls", protocol="TLS")
    fed.tell((MAIN, gateway(listener(), tls)), (APP, route("a.org")), ((TLS_ROUTE, "web/app"), route("b.org")))
    assert fed.names() == {"a.org", "b.org"}
    fed.tell((APP, None))
    assert fed.names() == {"b.org"}


def test_a_listener_set_and_its_forerunner_are_different_objects() -> None:
    fed = Fed()
    old = route("*.org", place="web/old", parents=[parent_ref("web/extra", X_LISTENER_SET)])
    fed.tell(
        (MAIN, gateway(allowedListeners=ALL_SETS)),
        (EXTRA, listener_set(listener("a.org"))),
        ((X_LISTENER_SET, "web/extra"), listener_set(listener("b.org"))),
        ((HTTP_ROUTE, "web/old"), old),
    )
    assert fed.names() == {"b.org"}
    fed.tell(((X_LISTENER_SET, "web/extra"), None))
    assert fed.names() == set()


@pytest.mark.parametrize("slice_size", [1, 7, 100])
def test_a_gateway_of_many_routes_is_settled_in_slices(slice_size: int) -> None:
    """No slice evaluates more objects than its limit, and one changed object does not wait for all others."""
    fed = Fed()
    routes = {f"web/r{number}": route(f"r{number}.org", place=f"web/r{number}") for number in range(100)}
    fed.source.change(HTTP_ROUTE, routes)
    fed.settle()
    fed.change(MAIN, gateway(listener()))
    assert len(fed.source.settle(slice_size)) <= slice_size
    fed.change((HTTP_ROUTE, "web/r1"), route("changed.org", place="web/r1"))
    assert "changed.org" in fed.source.settle(1)
    fed.settle(slice_size)
    assert len(fed.names()) == 100


def test_nothing_is_settled_without_leave() -> None:
    fed = Fed()
    fed.change(MAIN, gateway(listener("a.org")))
    assert fed.source.settle(0) == frozenset()
    assert not fed.source.is_settled
    assert list(fed.store.claims()) == []
    assert fed.source.settle(1) == {"a.org"}
    assert fed.source.is_settled
    assert fed.source.settle(5) == frozenset()


def test_what_a_snapshot_restored_stays_until_it_is_settled() -> None:
    """So the follower may wait until all kinds are known, and no name is missing in between."""
    before = Fed()
    before.tell((MAIN, gateway(listener())), (APP, route("a.org")))
    fed = Fed()
    fed.store.restore(HTTP_ROUTE, "web/app", before.store.claims_at(HTTP_ROUTE, "web/app"))
    fed.change(APP, route("a.org"))
    assert fed.names() == {"a.org"}
    fed.change(MAIN, gateway(listener()))
    assert fed.settle() == set()
    assert fed.names() == {"a.org"}


@given(histories, histories, st.integers(1, 3), st.integers(1, 4), st.randoms(use_true_random=False))
def test_claims_depend_on_the_last_objects_alone(
    history: list[Step], last: list[Step], slice_size: int, every: int, chance: Any
) -> None:
    """Not on earlier objects, nor on the order of events, nor on when they were settled."""
    travelled = Fed("public")
    for number, step in enumerate([*history, *last]):
        travelled.change(*step)
        if number % every == 0:
            travelled.source.settle(slice_size)
    travelled.settle(slice_size)
    fresh = Fed("public")
    final = [(key, one) for key, one in dict([*history, *last]).items() if one is not None]
    chance.shuffle(final)
    fresh.tell(*final)
    assert travelled.told() == fresh.told()


@given(histories, st.integers(1, 3))
def test_nothing_is_left_when_all_is_gone(history: list[Step], slice_size: int) -> None:
    fed = Fed()
    for number, (key, one) in enumerate(history):
        fed.change(key, one)
        if number % 2:
            fed.source.settle(slice_size)
    fed.tell(*((key, None) for key, _ in history))
    assert fed.told() == (set(), set())
    assert fed.source.is_empty()


@given(histories)
def test_the_reported_hostnames_are_those_that_changed(history: list[Step]) -> None:
    fed = Fed()
    for step in history:
        before = set(fed.store.claims())
        touched = fed.tell(step)
        changed = {claim.hostname for claim in before ^ set(fed.store.claims())}
        assert changed <= touched


NAMES = ("org", "a.org", "b.org", "b.a.org", "c.a.org", "c.b.a.org", "a.net")


@given(histories)
def test_the_names_that_routes_claim_are_those_of_the_specification(history: list[Step]) -> None:
    fed = Fed()
    fed.tell(*history)
    claimed = {name for name in NAMES for hostname in fed.names() if name_stands_in(hostname, name)}
    assert claimed == served_names(dict(history), NAMES)


@given(st.lists(hostnames, max_size=2), st.lists(hostnames, min_size=1, max_size=3, unique=True), own_annotations)
def test_the_names_that_a_route_claims_that_only_redirects_are_those_of_the_specification(
    own: list[str], doors: list[str], annotations: dict[str, str]
) -> None:
    """Histories have such a route too, but seldom one that reaches a wildcard."""
    listeners = [listener(hostname, f"l{number}") for number, hostname in enumerate(doors)]
    fed = Fed()
    steps = (MAIN, gateway(*listeners)), (APP, route(*own, rules=[TO_HTTPS], annotations=annotations))
    fed.tell(*steps)
    claimed = {name for name in NAMES for hostname in fed.names() if name_stands_in(hostname, name)}
    assert claimed == served_names(dict(steps), NAMES)
