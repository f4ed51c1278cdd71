from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.kit.figures import Spread, percentile, ratio, spread

FIGURES = st.lists(st.floats(0, 1e9), min_size=1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], None, id="no value"),
        pytest.param([3.0], Spread(3, 3, 3), id="one value"),
        pytest.param([9.0, 1.0, 2.0], Spread(2, 1, 9), id="an odd number"),
        pytest.param([4.0, 1.0, 2.0, 9.0], Spread(3, 1, 9), id="an even number: between the middle two"),
    ],
)
def test_a_spread_is_the_median_and_both_ends(values: list[float], expected: Spread | None) -> None:
    assert spread(values) == expected


@given(FIGURES)
def test_the_median_lies_between_the_ends(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    assert found.low <= found.median <= found.high


@pytest.mark.parametrize(
    ("ours", "peer", "expected"),
    [
        pytest.param(Spread(3, 0, 9), Spread(2, 1, 4), 1.5, id="medians alone count"),
        pytest.param(None, Spread(2, 1, 4), None, id="ours not measured"),
        pytest.param(Spread(2, 1, 4), None, None, id="the peer not measured"),
        pytest.param(Spread(2, 1, 4), Spread(0, 0, 0), None, id="a peer that did nothing"),
    ],
)
def test_a_ratio_is_that_of_two_medians(ours: Spread | None, peer: Spread | None, expected: float | None) -> None:
    assert ratio(ours, peer) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        pytest.param(0.5, 50, id="median"),
        pytest.param(0.99, 99, id="p99 of a hundred leaves one out"),
        pytest.param(1.0, 100, id="all"),
        pytest.param(0.0, 1, id="none is the least"),
    ],
)
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([float(value) for value in range(100, 0, -1)], share) == expected


def test_no_values_have_no_percentile() -> None:
    assert percentile([], 0.99) is None


@given(FIGURES, st.floats(0, 1))
def test_at_least_the_share_of_the_values_is_no_more_than_the_percentile(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
