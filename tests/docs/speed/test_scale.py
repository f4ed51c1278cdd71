from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.speed.scale import format_ratio, format_tick, format_value, make_scale


@given(st.floats(1e-9, 1e12))
def test_an_axis_begins_at_zero_and_ends_at_or_soon_after_the_highest(highest: float) -> None:
    scale = make_scale(highest)
    assert scale.ticks[0] == 0
    assert math.isclose(scale.ticks[-1], scale.end)
    assert highest <= scale.end * (1 + 1e-6)
    assert scale.share(highest) > 0.4
    assert 2 <= len(scale.ticks) <= 5


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (84_200, [0, 25_000, 50_000, 75_000, 100_000]),
        (1, [0, 0.25, 0.5, 0.75, 1]),
        (0.3, [0, 0.1, 0.2, 0.3]),
        (5.0, [0, 2, 4, 6]),
    ],
)
def test_ticks_are_round_numbers(highest: float, ticks: list[float]) -> None:
    assert make_scale(highest).ticks == pytest.approx(ticks)


@pytest.mark.parametrize("highest", [0.0, -1.0, math.inf, math.nan], ids=str)
def test_without_a_figure_above_zero_the_axis_is_one_long(highest: float) -> None:
    assert make_scale(highest).end == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (84_234, "84,200"), (5.061, "5.06"), (0.1312, "0.131"), (12.345, "12.3"), (1_234_567, "1.23M")],
)
def test_a_figure_has_three_digits(value: float, text: str) -> None:
    assert format_value(value) == text


def test_a_tick_has_no_zeros_at_its_end() -> None:
    assert [format_tick(value) for value in (0, 0.5, 2, 5_000, 100_000, 2e6)] == [
        "0",
        "0.5",
        "2",
        "5,000",
        "100k",
        "2M",
    ]


@pytest.mark.parametrize(("ratio", "text"), [(1.064, "1.06"), (0.5, "0.50"), (2.94, "2.9"), (25.2, "25"), (113, "110")])
def test_a_ratio_has_two_digits_and_a_small_one_three(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text
