"""From changes of objects to changes of claims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.source import IstioSource
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.istio.histories import Key, Step, histories
from tests.dnsproxy.sources.istio.objects import INGRESS_CLASS, NEW, gateway, service
from tests.dnsproxy.sources.istio.specification import name_stands_in, served_names


class Fed:
    """A source and the store it feeds."""

    def __init__(self, *classes: str, most: int | None = None) -> None:
        self.store = ClaimStore()
        self.source = IstioSource(self.store, classes=frozenset(classes), most=most)

    def change(self, key: Key, one: Any) -> None:
        kind, place = key
        assert self.source.change(kind, {place: one}) == frozenset()

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


MAIN, APP = (ISTIO_GATEWAY, "infra/main"), (VIRTUAL_SERVICE, "web/app")


def test_objects_come_change_and_go() -> None:
    """The touched hostnames are reported each time."""
    fed = Fed()
    assert fed.tell((APP, service("a.org"))) == set()
    assert fed.tell((MAIN, gateway("*"))) == {"a.org"}
    assert fed.tell((APP, service("b.org"))) == {"a.org", "b.org"}
    assert fed.tell((APP, service("b.org", created=NEW))) == {"b.org"}
    assert fed.tell((MAIN, None)) == {"b.org"}
    assert fed.tell((MAIN, gateway("b.org"))) == {"b.org"}
    assert fed.tell((APP, None)) == {"b.org"}
    assert fed.names() == set()
    assert fed.names(routed=False) == {"b.org"}


def test_a_change_without_effect_on_names_costs_nothing() -> None:
    fed = Fed()
    fed.tell((MAIN, gateway("*")), (APP, service("a.org")))
    fed.change(MAIN, gateway("*/*", resourceVersion="2"))
    fed.change(APP, service("a.org", export_to=["infra"]))
    assert fed.source.is_settled


def test_a_change_touches_only_what_depends_on_it() -> None:
    fed = Fed()
    fed.tell(
        (MAIN, gateway("*")),
        ((ISTIO_GATEWAY, "infra/other"), gateway("*", place="infra/other")),
        (APP, service("a.org")),
        ((VIRTUAL_SERVICE, "web/b"), service("b.org", place="web/b", gateways=["infra/other"])),
        ((VIRTUAL_SERVICE, "web/c"), service("c.org", place="web/c", gateways=None)),
    )
    assert fed.tell((MAIN, gateway("*", selector={"istio": "x"}))) == {"a.org"}
    assert fed.tell(((ISTIO_GATEWAY, "infra/other"), None)) == {"b.org"}


def test_a_class_that_is_not_wanted_claims_nothing() -> None:
    fed = Fed(INGRESS_CLASS)
    fed.tell((MAIN, gateway("a.org", selector={"istio": "x"})), (APP, service("a.org")))
    assert fed.told()[0] == set()
    assert fed.tell((MAIN, gateway("a.org"))) == {"a.org"}


def test_an_unreadable_object_claims_nothing_and_harms_no_other() -> None:
    fed = Fed()
    fed.tell((MAIN, gateway("*")), (APP, service("a.org")))
    broken = Unreadable(ObjectMeta("b", "web"), "Expected `str`")
    assert fed.tell(((VIRTUAL_SERVICE, "web/b"), broken)) == set()
    assert fed.tell((APP, Unreadable(ObjectMeta("app", "web"), "Expected `str`"))) == {"a.org"}
    assert {str(one.origin) for one in fed.store.rejections()} == {"VirtualService web/b", "VirtualService web/app"}


def test_objects_that_changed_come_before_those_below_a_gateway() -> None:
    fed = Fed()
    many = [((VIRTUAL_SERVICE, f"web/s{n}"), service(f"s{n}.org", place=f"web/s{n}")) for n in range(10)]
    fed.tell(*many)
    fed.change(MAIN, gateway("*"))
    fed.change(APP, service("a.org"))
    assert "a.org" in fed.source.settle(2)
    assert not fed.source.is_settled
    assert len(fed.settle(1)) == 10


def test_a_slice_evaluates_no_more_than_it_may() -> None:
    fed = Fed()
    fed.tell(*(((VIRTUAL_SERVICE, f"web/s{n}"), service(f"s{n}.org", place=f"web/s{n}")) for n in range(10)))
    fed.change(MAIN, gateway("*"))
    assert [len(fed.source.settle(size)) for size in (0, 1, 3, 100)] == [0, 0, 3, 7]


def test_an_object_is_reported_once_more() -> None:
    fed = Fed()
    fed.tell((MAIN, gateway("*")), (APP, service("a.org")))
    fed.store.replace(*APP, [])
    assert fed.source.report(*APP) == {"a.org"}
    assert fed.names() == {"a.org"}


def test_hosts_beyond_the_limit_are_rejected_and_affect_no_other_object() -> None:
    fed = Fed(most=5)
    huge = service(*(f"h{number}.example.org" for number in range(100_000)), place="web/huge")
    fed.tell((MAIN, gateway("*")), (APP, service("a.org")), ((VIRTUAL_SERVICE, "web/huge"), huge))
    assert fed.names() == {"a.org", *(f"h{number}.example.org" for number in range(5))}
    (rejection,) = fed.store.rejections()
    assert "more than 5 names" in rejection.reason


@given(histories, histories, st.integers(1, 3), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_claims_depend_only_on_the_objects(
    history: list[Step], last: list[Step], slice_size: int, every: int, chance: Any
) -> None:
    """Not on earlier objects, nor on the order of events, nor on when they were settled."""
    travelled = Fed()
    for number, step in enumerate([*history, *last]):
        travelled.change(*step)
        if number % every == 0:
            travelled.source.settle(slice_size)
    travelled.settle(slice_size)
    fresh = Fed()
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


@given(histories)
def test_every_reason_is_one_safe_line(history: list[Step]) -> None:
    fed = Fed()
    fed.tell(*history)
    assert all(one.reason.isprintable() and len(one.reason) < 1000 for one in fed.store.rejections())


NAMES = ("org", "a.org", "b.org", "b.a.org", "c.a.org", "c.b.a.org", "a.net")


@given(histories)
def test_the_names_that_virtual_services_claim_are_those_of_the_documentation(history: list[Step]) -> None:
    fed = Fed()
    fed.tell(*history)
    claimed = {name for name in NAMES for hostname in fed.names() if name_stands_in(hostname, name)}
    assert claimed == served_names(dict(history), NAMES)


def test_of_the_names_of_many_gateways_no_more_are_claimed_than_show_that_there_are_too_many() -> None:
    """32 Gateways may have 32,000 names, of which a thousand count: the rest took a tenth of a second."""
    keys = [f"infra/g{number}" for number in range(4)]
    gateways = [((ISTIO_GATEWAY, key), gateway(*(f"{key[-2:]}h{n}.org" for n in range(5)), place=key)) for key in keys]
    fed = Fed(most=5)
    fed.tell(*gateways, (APP, service("*", gateways=keys)))
    assert fed.names() == {*(f"g0h{n}.org" for n in range(5)), "g1h0.org"}


@pytest.mark.parametrize(
    ("taker", "owner"),
    [
        pytest.param((APP, service("a.org", created=NEW)), "web", id="one that is bound to it"),
        pytest.param((APP, service("a.org", created=NEW, gateways=["main"])), "infra", id="one that is not"),
    ],
)
def test_a_virtual_service_takes_the_name_of_its_gateway_without_waiting(taker: Step, owner: str) -> None:
    fed = Fed()
    registry = Registry(targets=Targets(("192.0.2.1",)), guards=Guards(), holds=Holds(600))
    registry.holds.begin()
    for step in ((MAIN, gateway("a.org")), ((ISTIO_GATEWAY, "web/main"), gateway("a.org", place="web/main")), taker):
        fed.tell(step)
        for (kind, key), _ in ((MAIN, None), taker):
            registry.replace(kind, key, [one for one in fed.store.claims() if str(one.origin) == f"{kind} {key}"])
        for _ in registry.changes(0):
            pass
    winner = registry.verdict("a.org", Reach.NAME).winner
    assert winner is not None
    assert winner.origin.namespace == owner


@pytest.mark.parametrize("kind", [ISTIO_GATEWAY, VIRTUAL_SERVICE])
def test_a_deletion_of_an_unknown_object_is_nothing(kind: str) -> None:
    fed = Fed()
    assert fed.tell(((kind, "web/gone"), None)) == set()
    assert fed.source.is_empty()
