"""How much each party may have of something that does not suffice for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.fair_level import FairLevel

DEMANDS = st.lists(st.integers(0, 300), max_size=12)


def level_of(demands: list[int], *, ceiling: int, capacity: int) -> int:
    fair = FairLevel(ceiling=ceiling, capacity=capacity)
    for demand in demands:
        fair.change(0, demand)
    return fair.level


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        ([], 20),
        ([20, 20, 20, 20, 20], 20),
        ([500], 20),
        ([500, 500, 500, 500, 500], 20),
        ([20, 20, 20, 20, 20, 1], 10),
        ([20] * 11, 5),
        ([1] * 100, 20),
        ([2] * 51, 1),
        ([1] * 101, 0),
    ],
    ids=[
        "nobody",
        "all-fit-exactly",
        "one-is-greedy",
        "as-many-greedy-ones-as-fit",
        "one-too-many",
        "halved-twice",
        "a-hundred-small-ones",
        "down-to-one",
        "not-even-one-each",
    ],
)
def test_level(demands: list[int], expected: int) -> None:
    """At most 20 each, and 100 together."""
    assert level_of(demands, ceiling=20, capacity=100) == expected


@given(demands=DEMANDS, ceiling=st.integers(1, 100), capacity=st.integers(1, 400))
def test_what_all_get_fits_and_half_the_level_was_needed(demands: list[int], ceiling: int, capacity: int) -> None:
    """The level is the largest of the halves at which all demands fit."""
    level = level_of(demands, ceiling=ceiling, capacity=capacity)
    assert level <= ceiling
    assert sum(min(demand, level) for demand in demands) <= capacity
    if level < min(ceiling, capacity):
        halves = [min(ceiling, capacity) >> shift for shift in range(10)]
        twice = halves[halves.index(level) - 1]
        assert sum(min(demand, twice) for demand in demands) > capacity


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300)), max_size=30),
    st.integers(1, 100),
    st.integers(1, 400),
)
def test_level_depends_only_on_the_demands(changes: list[tuple[int, int]], ceiling: int, capacity: int) -> None:
    """Whatever they were before."""
    fair = FairLevel(ceiling=ceiling, capacity=capacity)
    demands = [0] * 5
    for party, demand in changes:
        fair.change(demands[party], demand)
        demands[party] = demand
    assert fair.level == level_of(demands, ceiling=ceiling, capacity=capacity)
