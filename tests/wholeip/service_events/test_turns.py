"""Turns: each Node has its own for each Event, and the waits keep the requests of all agents few."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholeip.service_events.turns import FIRST, REPEAT, first_wait, repeat_wait, turns_of

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.sets(NAMES, min_size=1, max_size=30), NAMES)
def test_the_nodes_have_one_turn_each(nodes: set[str], name: str) -> None:
    assert sorted(turns_of(one, nodes).turn(name) for one in nodes) == list(range(len(nodes)))


def test_the_first_turns_of_many_events_are_spread_over_the_nodes() -> None:
    nodes = frozenset(f"node-{number:03}" for number in range(100))
    places = {one: turns_of(one, nodes) for one in nodes}
    first = Counter(one for one in nodes for number in range(1000) if places[one].turn(f"wholeip-{number}") == 0)
    assert first.total() == 1000
    # 10 of 1,000 on average.
    assert max(first.values()) < 40


@pytest.mark.parametrize("nodes", [frozenset[str](), frozenset({"n2"})], ids=["hidden", "another name"])
def test_agents_whose_nodes_are_hidden_do_not_all_come_first(nodes: frozenset[str]) -> None:
    turns = Counter(turns_of(f"n{number}x", nodes).turn("wholeip-1") for number in range(1000))
    assert turns[0] <= 5
    assert max(turns.values()) <= 10


@pytest.mark.parametrize(
    ("turn", "draw", "first", "again"),
    [
        pytest.param(0, 0.0, FIRST, REPEAT, id="the first"),
        pytest.param(0, 0.5, 2 * FIRST, 1.25 * REPEAT, id="the first, spread"),
        pytest.param(1, 0.0, 4 * FIRST, 4 * REPEAT, id="the second"),
        pytest.param(9, 0.0, 100 * FIRST, 100 * REPEAT, id="the tenth"),
    ],
)
def test_later_turns_are_slower(turn: int, draw: float, first: float, again: float) -> None:
    assert (first_wait(turn, draw), repeat_wait(turn, draw)) == (first, again)


def test_a_thousand_reports_that_begin_at_once_are_spread_over_a_half_minute() -> None:
    """By all agents of a large cluster: those of later turns come when the first turn is over."""
    draw = random.Random(1).random  # noqa: S311  # no secret
    seconds = Counter(int(first_wait(turn, draw())) for _ in range(1000) for turn in range(1000))
    first = [seconds[one] for one in range(120)]
    assert sum(first[:15]) == 0
    assert sum(first[15:45]) == 1000
    assert max(first) <= 60
    assert max(seconds.values()) == max(first)
