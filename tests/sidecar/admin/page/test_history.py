"""The samples of the charts; charts.py is tested through the pages of the programs."""

from __future__ import annotations

import pytest

from sidecar.admin.page.history import KEPT, Chart, History, level, mean, rate

CHARTS = (
    Chart("a", "A", "a second", (rate("sum", "both", "one", "two"), level("now", "waiting", "gauge"))),
    Chart("b", "B", "ms", (mean("time", "mean", "seconds", "count", scale=1000),)),
)


def reading(one: float = 0, gauge: float = 0, seconds: float = 0, count: float = 0) -> dict[str, float]:
    return {"one": one, "two": one, "gauge": gauge, "seconds": seconds, "count": count}


def test_a_sample_is_what_came_between_two_readings() -> None:
    history = History(CHARTS)
    history.take(100.0, reading())
    assert (history.number, history.since(0), history.line("sum")) == (0, [], [])
    history.take(102.0, reading(one=5, gauge=7, seconds=0.5, count=100))
    assert history.since(0) == [(5.0, 7, 5.0)]
    history.take(103.0, reading(one=5, gauge=1, seconds=0.5, count=100))
    assert history.since(1) == [(0.0, 1, 0.0)]
    assert history.line("now") == [7, 1]


@pytest.mark.parametrize("now", [100.0, 99.0], ids=["stands still", "goes back"])
def test_a_clock_that_does_not_go_on_makes_no_sample(now: float) -> None:
    history = History(CHARTS)
    history.take(100.0, reading())
    history.take(now, reading(one=5))
    assert history.number == 0


@pytest.mark.parametrize(
    ("since", "expected"),
    [(0, KEPT), (KEPT * 2, 0), (KEPT * 2 - 3, 3), (KEPT, KEPT), (KEPT - 1, KEPT), (KEPT * 2 + 1, KEPT), (10**15, KEPT)],
    ids=["all", "none", "three", "just kept", "one is gone", "of another life", "nonsense"],
)
def test_the_samples_after_a_number_are_told_as_far_as_they_are_kept(since: int, expected: int) -> None:
    history = History(CHARTS)
    for second in range(KEPT * 2 + 1):
        history.take(second, reading(one=second))
    assert (history.number, len(history.since(since))) == (KEPT * 2, expected)
