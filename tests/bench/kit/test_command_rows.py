"""Figures of a command with their goals, and of another checkout beside them."""

from __future__ import annotations

from typing import Final

import pytest

from tests.bench.kit.command_rows import Figures, Row, make_rows
from tests.bench.kit.figures import Spread

TIME: Final = "time"
MEMORY: Final = "memory"
FIGURES: Final[Figures[tuple[float, float]]] = {
    TIME: (lambda one: one[0], "s"),
    MEMORY: (lambda one: one[1], "MB"),
}


def rows_of(*samples: tuple[float, float], beside: tuple[tuple[float, float], ...] = ()) -> dict[str, Row]:
    rows = make_rows("status", FIGURES, samples, beside, goals={TIME: 2.0}, way="pod")
    return {row.what: row for row in rows}


def test_a_figure_is_the_median_of_its_rounds() -> None:
    rows = rows_of((3.0, 30), (1.0, 36), (1.2, 90))
    assert (rows[TIME].figure, rows[TIME].unit) == (Spread(1.2, 1.0, 3.0), "s")
    assert (rows[MEMORY].figure, rows[MEMORY].unit) == (Spread(36, 30, 90), "MB")
    assert {(row.command, row.way) for row in rows.values()} == {("status", "pod")}


@pytest.mark.parametrize(
    ("seconds", "reached"),
    [
        pytest.param(1.9, True, id="below it"),
        pytest.param(2.0, True, id="just reached"),
        pytest.param(2.01, False, id="just missed"),
    ],
)
def test_a_goal_is_compared_with_the_median(seconds: float, reached: bool) -> None:
    rows = rows_of((seconds, 1), (0.1, 1), (9.0, 1))
    assert (rows[TIME].goal, rows[TIME].reached) == (2.0, reached)
    assert (rows[MEMORY].goal, rows[MEMORY].reached) == (None, None)


def test_another_checkout_stands_beside() -> None:
    row = rows_of((1.0, 1), beside=((2.0, 1),))[TIME]
    assert (row.beside, row.ratio) == (Spread(2, 2, 2), 0.5)
    assert (rows_of((1.0, 1))[TIME].beside, rows_of((1.0, 1))[TIME].ratio) == (None, None)


def test_a_command_without_samples_has_no_figure_and_reaches_nothing() -> None:
    row = rows_of()[TIME]
    assert (row.figure, row.reached, row.ratio) == (None, None, None)
