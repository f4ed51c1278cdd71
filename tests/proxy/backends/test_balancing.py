"""The order in which the addresses of a backend are tried."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.balancing import FAILED_SECONDS, MOST_TRIED, Pool


@dataclass(frozen=True)
class Place:
    host: str


V4 = [Place(f"192.0.2.{number}") for number in range(1, 5)]
V6 = [Place(f"2001:db8::{number}") for number in range(1, 5)]


def pool(*places: Place) -> Pool[Place]:
    made: Pool[Place] = Pool()
    made.replace(places)
    return made


def family(place: Place) -> str:
    return "IPv6" if ":" in place.host else "IPv4"


def test_without_addresses_none_is_tried() -> None:
    assert pool().order(now=0) == ()


def test_one_address_is_tried_even_after_it_failed() -> None:
    one = pool(V4[0])
    one.note_failure(V4[0], now=0)
    assert one.order(now=0) == (V4[0],)


def test_an_address_that_comes_twice_is_tried_once() -> None:
    assert pool(V4[0], V4[0]).order(now=0) == (V4[0],)


@pytest.mark.parametrize(
    ("given_order", "families"),
    [
        pytest.param([*V4[:2], *V6[:2]], "6464", id="IPv4 first"),
        pytest.param([*V6[:2], *V4[:2]], "6464", id="IPv6 first"),
        pytest.param([*V6[:3], V4[0]], "6466", id="one IPv4"),
        pytest.param([V6[0], *V4[:3]], "6444", id="one IPv6"),
        pytest.param(V4[:3], "444", id="IPv4 alone"),
    ],
)
def test_the_families_take_turns(given_order: list[Place], families: str) -> None:
    assert "".join(family(place)[-1] for place in pool(*given_order).order(now=0)) == families


def test_connections_take_turns_within_the_first_family() -> None:
    places = pool(*V6[:3], *V4[:2])
    firsts = Counter(places.order(now=0)[0] for _ in range(30))
    assert firsts == dict.fromkeys(V6[:3], 10)


def test_what_failed_is_tried_last_for_a_while_and_then_as_before() -> None:
    places = pool(*V4[:3])
    places.note_failure(V4[1], now=100)
    for _ in range(5):
        assert places.order(now=100 + FAILED_SECONDS - 1)[-1] == V4[1]
    assert V4[1] in {places.order(now=100 + FAILED_SECONDS)[0] for _ in range(3)}


def test_what_answered_is_tried_as_before_at_once() -> None:
    places = pool(*V4[:2])
    places.note_failure(V4[0], now=0)
    places.note_success(V4[0])
    assert V4[0] in {places.order(now=0)[0] for _ in range(2)}


def test_where_all_failed_the_one_that_has_waited_longest_is_first() -> None:
    places = pool(*V4[:3])
    for now, place in enumerate([V4[2], V4[0], V4[1]]):
        places.note_failure(place, now=now)
    assert places.order(now=3) == (V4[2], V4[0], V4[1])


def test_a_failure_of_an_address_that_is_gone_is_forgotten() -> None:
    places = pool(*V4[:2])
    places.note_failure(V4[0], now=0)
    places.note_failure(V4[3], now=0)
    places.replace(V4[1:3])
    places.replace(V4[:3])
    assert {places.order(now=0)[0] for _ in range(3)} == set(V4[:3])


def test_what_is_known_of_an_address_that_stays_is_kept() -> None:
    places = pool(*V4[:2])
    places.note_failure(V4[0], now=0)
    places.replace([*V4[:2], V4[2]])
    assert all(places.order(now=1)[-1] == V4[0] for _ in range(5))


@given(
    st.lists(st.sampled_from([*V4, *V6])),
    st.lists(st.tuples(st.sampled_from([*V4, *V6]), st.booleans(), st.integers(0, 100))),
)
def test_whatever_failed_each_address_is_tried_once_and_none_is_left_out(
    held: list[Place], events: list[tuple[Place, bool, int]]
) -> None:
    places = pool(*held)
    for place, failed, now in events:
        if failed:
            places.note_failure(place, now=now)
        else:
            places.note_success(place)
        order = places.order(now=now)
        assert len(order) == min(MOST_TRIED, len(set(held)))
        assert set(order) == set(held)


def test_an_address_that_is_held_back_is_tried_after_those_that_failed() -> None:
    one = pool(V4[0], V4[1])
    one.note_failure(V4[0], now=0)
    one.replace(V4[:2], last=[V4[2]])
    assert one.addresses == (V4[0], V4[1], V4[2])
    assert one.order(now=1) == (V4[1], V4[0], V4[2])
    # However long it takes: it is tried like the others only when it is given as one of them.
    assert one.order(now=10 * FAILED_SECONDS)[-1] == V4[2]
    one.replace(V4[:3])
    assert {one.order(now=20 * FAILED_SECONDS)[0] for _ in range(3)} == set(V4[:3])


def test_an_address_that_is_held_back_is_used_once_it_has_taken_over() -> None:
    one = pool()
    one.replace([V4[0]], last=[V4[1]])
    one.note_failure(V4[0], now=0)
    one.note_success(V4[1])
    assert one.order(now=1) == (V4[1], V4[0])
