"""Which objects of the cluster may claim names, so that no namespace uses up what is there for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Rejection
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.name_shares import NAMESPACE, NameShares

SMALL = NameLimits(per_object=4, per_namespace=10, total=24)


@dataclass(frozen=True)
class Object:
    """An object of the cluster, with hostnames of its own."""

    key: str
    size: int
    age: int = 0
    """The greater, the younger."""

    @property
    def claims(self) -> list[Claim]:
        namespace, _, name = self.key.rpartition("/")
        origin = Origin("Ingress", name, namespace, f"2026-11-{self.age:02}")
        return [Claim(f"{n}.{name}.{namespace or 'none'}.example.org", Reach.NAME, origin) for n in range(self.size)]


class World:
    """A cluster whose sources report every object that is wanted again."""

    def __init__(self, objects: Iterable[Object] = (), *, limits: NameLimits = SMALL) -> None:
        self.store = ClaimStore()
        self.shares = NameShares(self.store, limits=limits)
        self.objects: dict[str, Object] = {}
        for one in objects:
            self.report(one)
        self.settle()

    def report(self, one: Object) -> frozenset[str]:
        """An object is new or has changed; without hostnames it is gone."""
        self.objects[one.key] = one
        return self.shares.replace("Ingress", one.key, one.claims)

    def settle(self) -> set[str]:
        """Returns the hostnames whose claims changed."""
        touched = {name for names in self.shares.settle() for name in names}
        while place := self.shares.next_wanted():
            touched |= self.report(self.objects[place[1]])
            touched |= {name for names in self.shares.settle() for name in names}
        return touched

    @property
    def admitted(self) -> dict[str, int]:
        """The number of names of each object that claims any."""
        return {key: len(self.store.claims_at("Ingress", key)) for key in self.store.keys("Ingress")}

    def lost(self, namespace: str) -> list[str]:
        return [one.reason for one in self.store.rejections_at((NAMESPACE, namespace))]


def test_objects_of_no_namespace_have_a_share_together_and_take_none_of_a_namespace_of_their_name() -> None:
    """Of a custom kind, such as a Site for each tenant, named as its namespace."""
    of_namespace = Object("n/a", 4, 2), Object("n/b", 4, 3)
    world = World([*of_namespace, Object("n", 4, 1), Object("m", 4, 3), Object("o", 3, 4)])
    assert world.admitted == {"n/a": 4, "n/b": 4, "n": 4, "m": 4}
    (left_out,) = world.store.rejections_at(("Ingress", "o"))
    assert str(left_out.origin) == "Ingress o"
    assert world.lost("n") == []
    (reported,) = world.store.rejections_at((NAMESPACE, ""))
    assert str(reported.origin) == "Namespace (none)"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([Object("n/a", 4, 1), Object("n/b", 4, 2), Object("n/c", 2, 3)], {"n/a": 4, "n/b": 4, "n/c": 2}),
        ([Object("n/a", 9, 1)], {"n/a": 4}),
        ([Object("n/a", 4, 3), Object("n/b", 4, 2), Object("n/c", 4, 1)], {"n/b": 4, "n/c": 4}),
        ([Object("n/a", 4, 1), Object("n/b", 4, 1), Object("n/c", 4, 1)], {"n/a": 4, "n/b": 4}),
        ([Object("n/a", 4, 1), Object("n/b", 4, 2), Object("n/c", 4, 3), Object("n/d", 1, 4)], {"n/a": 4, "n/b": 4}),
        (
            [Object(f"n/{n}", 4, n) for n in range(5)] + [Object("m/a", 4, 9)],
            {"n/0": 4, "n/1": 4, "m/a": 4},
        ),
        (
            [Object(f"{name}/{n}", 4, n) for name in "nmo" for n in range(5)] + [Object("p/a", 4, 9)],
            {"n/0": 4, "m/0": 4, "o/0": 4, "p/a": 4},
        ),
    ],
    ids=[
        "exactly-full",
        "object-claims-too-many",
        "youngest-is-left-out",
        "of-one-age-the-last-by-name",
        "younger-than-one-left-out",
        "other-namespace-loses-nothing",
        "all-together-too-many-cuts-the-greedy",
    ],
)
def test_admitted(objects: list[Object], expected: Mapping[str, int]) -> None:
    """At most 4 names per object, 10 per namespace and 24 in all."""
    assert World(objects).admitted == expected


OBJECTS = st.builds(
    Object,
    key=st.sampled_from([f"{namespace}/{name}" for namespace in "nmop" for name in "abcde"]),
    size=st.integers(0, 6),
    age=st.integers(1, 3),
)


@given(st.lists(st.tuples(OBJECTS, st.booleans()), max_size=40))
def test_admitted_depends_only_on_the_objects(changes: list[tuple[Object, bool]]) -> None:
    """Whatever they were before, in whatever order they came, and however often the shares were settled in between."""
    world = World()
    for one, settled in changes:
        world.report(one)
        if settled:
            world.settle()
    world.settle()
    fresh = World(sorted(world.objects.values(), key=lambda one: one.key))
    assert world.admitted == fresh.admitted
    assert set(world.store.claims()) == set(fresh.store.claims())
    assert set(world.store.rejections()) == set(fresh.store.rejections())
    assert world.shares.left_out() == fresh.shares.left_out()


@given(st.lists(OBJECTS, max_size=40, unique_by=lambda one: one.key))
def test_namespace_below_the_level_loses_nothing(objects: list[Object]) -> None:
    """And what all have together is within the limits."""
    world = World(objects)
    claimed = {name: sum(min(one.size, 4) for one in objects if one.key.startswith(name)) for name in "nmop"}
    taken = {name: sum(n for key, n in world.admitted.items() if key.startswith(name)) for name in "nmop"}
    for name in "nmop":
        assert taken[name] == claimed[name] if claimed[name] <= world.shares.level else taken[name] < claimed[name]
        assert bool(world.lost(name)) is (taken[name] < claimed[name])
    assert max(taken.values()) <= 10
    assert sum(taken.values()) <= 24


@given(st.lists(OBJECTS, max_size=40))
def test_changed_hostnames_are_reported(changes: list[Object]) -> None:
    """By the change itself, or when the shares are settled: nothing else tells the table."""
    world = World()
    for one in changes:
        before = {name: world.store.claims_for(name) for name in world.store.names()}
        touched = world.report(one) | world.settle()
        after = {name: world.store.claims_for(name) for name in world.store.names()}
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert changed <= touched


def test_room_that_is_left_admits_again() -> None:
    """The object that was left out is wanted, and nothing of it was kept."""
    world = World([Object("n/a", 4, 1), Object("n/b", 4, 2), Object("n/c", 4, 3)])
    world.report(Object("n/a", 0))
    assert list(world.shares.settle()) == [frozenset()]
    assert world.shares.next_wanted() == ("Ingress", "n/c")
    assert world.shares.is_wanted("Ingress", "n/c")
    world.settle()
    assert not world.shares.is_wanted("Ingress", "n/c")
    assert world.admitted == {"n/b": 4, "n/c": 4}


def test_wanted_objects_are_of_each_namespace_in_turn() -> None:
    """Many objects of one namespace keep no other waiting."""
    world = World([Object(f"{name}/{n}", 4 if n < 3 else 1, n) for name in "nm" for n in range(9)])
    for key in ("n/0", "n/1", "m/0", "m/1"):
        world.report(Object(key, 0))
    list(world.shares.settle())
    assert {(world.shares.next_wanted() or ("", ""))[1][0] for _ in range(2)} == {"n", "m"}


def test_object_that_is_gone_is_not_wanted() -> None:
    """Nor one that was left out again."""
    world = World([Object("n/a", 4, 1), Object("n/b", 4, 2), Object("n/c", 4, 3)])
    world.report(Object("n/a", 0))
    list(world.shares.settle())
    world.report(Object("n/a", 4, 1))
    list(world.shares.settle())
    assert world.shares.next_wanted() is None
    world.report(Object("n/a", 0))
    list(world.shares.settle())
    world.report(Object("n/c", 0))
    assert world.shares.next_wanted() is None


def test_change_costs_what_it_touches() -> None:
    """A full store settles in as many steps as objects lose or get their names, whatever else it holds."""
    limits = NameLimits(per_object=10, per_namespace=100, total=10_000)
    world = World((Object(f"{n % 50}/{n}", 1, n % 9 + 1) for n in range(2_000)), limits=limits)
    assert world.shares.left_out() == (0, 0)
    world.report(Object("0/old", 10, 0))
    assert len(list(world.shares.settle())) == 0
    for n in range(7):
        world.report(Object(f"0/old{n}", 10, 0))
    assert len(list(world.shares.settle())) == 20


def test_reports_say_which_limit() -> None:
    """That of the namespace, or that of all."""
    world = World([Object(f"n/{n}", 4, n) for n in range(4)])
    assert world.lost("n") == [
        "2 of 4 objects are left out, the youngest, from Ingress n/2 on: "
        "a namespace may claim 10 names (--max-names-per-namespace)"
    ]
    for name in "mo":
        for n in range(4):
            world.report(Object(f"{name}/{n}", 4, n))
    world.settle()
    assert world.lost("n") == [
        "3 of 4 objects are left out, the youngest, from Ingress n/1 on: "
        "its share of 24 names (--max-names) is 5 at present"
    ]


def test_object_over_its_limit_says_so() -> None:
    """The hostnames that it keeps are its first."""
    world = World([Object("n/a", 7)])
    assert sorted(world.store.names()) == [f"{n}.a.n.example.org" for n in range(4)]
    (rejection,) = world.store.rejections_at(("Ingress", "n/a"))
    assert rejection.reason == "it claims more than 4 names (--max-names-per-object): the others are left out"


def test_claim_that_an_object_repeats_counts_once() -> None:
    """Also when the object goes: what it took is free again."""
    world = World()
    claims = Object("n/a", 2).claims
    world.shares.replace("Ingress", "n/a", [*claims, *claims, *claims])
    assert len(list(world.store.names())) == 2
    world.report(Object("n/a", 0))
    world.report(Object("n/b", 4))
    world.report(Object("n/c", 4))
    world.settle()
    assert set(world.admitted) == {"n/b", "n/c"}


def test_rejections_stay_when_an_object_is_left_out() -> None:
    """They tell its owner what else is wrong with it."""
    world = World([Object("n/a", 4, 2), Object("n/b", 4, 3)])
    fault = Rejection(Origin("Ingress", "b", "n"), "bad")
    world.shares.replace("Ingress", "n/b", Object("n/b", 4, 3).claims, [fault])
    world.report(Object("n/c", 4, 1))
    world.settle()
    assert set(world.admitted) == {"n/a", "n/c"}
    left_out = "its 4 names are left out: older objects use up the share of its namespace"
    assert [one.reason for one in world.store.rejections_at(("Ingress", "n/b"))] == ["bad", left_out]
    world.report(Object("n/c", 0))
    world.settle()
    assert world.store.rejections_at(("Ingress", "n/b")) == ()


def test_snapshot_is_bounded_too() -> None:
    """What it had of an object counts until the object is reported, or is known to be gone."""
    world = World()
    for n in range(3):
        one = Object(f"n/{n}", 4, n)
        world.shares.restore("Ingress", one.key, one.claims)
    assert set(world.admitted) == {"n/0", "n/1"}
    world.report(Object("n/1", 4, 1))
    assert set().union(*world.shares.forget_restored("Ingress")) == {f"{n}.0.n.example.org" for n in range(4)}
    assert set(world.admitted) == {"n/1"}
    assert list(world.shares.settle()) == [frozenset()]
    assert world.shares.next_wanted() == ("Ingress", "n/2")
