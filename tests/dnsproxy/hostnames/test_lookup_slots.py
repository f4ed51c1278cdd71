"""The slots of lookups: a namespace has its share, and leaves free slots to the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.lookup_slots import LookupSlots


def take_all(slots: LookupSlots, namespace: str) -> int:
    taken = 0
    while slots.free and namespace not in slots.full:
        slots.take(namespace)
        taken += 1
    return taken


@pytest.mark.parametrize(
    ("most", "each", "taken"),
    [
        pytest.param(16, 2, 2, id="its share"),
        pytest.param(16, 16, 8, id="half of all, if its share is more"),
        pytest.param(1, 2, 1, id="the only one"),
        pytest.param(2, 2, 1, id="one of two"),
    ],
)
def test_a_namespace_alone_takes_its_share_and_never_all(most: int, each: int, taken: int) -> None:
    assert take_all(LookupSlots(most, each=each), "slow") == taken


def test_a_slot_that_is_given_back_can_be_taken_again() -> None:
    slots = LookupSlots(4, each=1)
    slots.take("shop")
    assert slots.full == {"shop"}
    slots.give_back("shop")
    assert (slots.full, slots.free) == (frozenset(), 4)


def test_namespaces_that_take_all_they_may_come_to_equal_shares() -> None:
    slots = LookupSlots(32, each=32)
    assert take_all(slots, "first") == 16
    assert take_all(slots, "second") == 8
    for _ in range(4):
        slots.give_back("first")
    assert "first" in slots.full, "it has no fewer than are free"
    assert take_all(slots, "second") == 2
    assert slots.free == 10


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans())), st.integers(1, 20), st.integers(1, 20))
def test_the_bounds_are_kept_and_a_namespace_without_a_slot_may_have_one(
    steps: list[tuple[str, bool]], most: int, each: int
) -> None:
    slots = LookupSlots(most, each=each)
    used = dict.fromkeys("abcdef", 0)
    for namespace, taking in steps:
        if taking and slots.free and namespace not in slots.full:
            slots.take(namespace)
            used[namespace] += 1
        elif not taking and used[namespace]:
            slots.give_back(namespace)
            used[namespace] -= 1
        assert slots.free == most - sum(used.values()) >= 0
        assert max(used.values()) <= max(1, min(each, (most + 1) // 2))
        assert not slots.free or all(used[one] for one in slots.full)
