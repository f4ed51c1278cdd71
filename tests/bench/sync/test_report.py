from __future__ import annotations

import json

import pytest

from tests.bench.kit.figures import Spread, spread
from tests.bench.sync import report
from tests.bench.sync.report import GOALS, SIZES, Row, format_table, make_row, to_json


def line_of(row: Row) -> str:
    return format_table([row]).splitlines()[2]


@pytest.mark.parametrize(
    ("size", "what", "goal"),
    [
        pytest.param(10_000, report.READY, 1.0, id="10,000 are ready"),
        pytest.param(100_000, report.READY, 8.0, id="100,000 are ready"),
        pytest.param(10_000, report.RESIDENT, 100.0, id="10,000 in memory"),
        pytest.param(100_000, report.RESIDENT, 300.0, id="100,000 in memory"),
        *(
            pytest.param(size, what, goal, id=f"{size}: {what}")
            for size in SIZES
            for what, goal in (
                (report.SYNC_P99, 5.0),
                (report.CHANGES_P99, 5.0),
                (report.ANSWERED_P50, 20.0),
                (report.ANSWERED_P99, 100.0),
            )
        ),
    ],
)
def test_a_figure_stays_below_its_goal(size: int, what: str, goal: float) -> None:
    assert GOALS[size, what] == goal
    assert make_row(size, what, spread([goal - 0.01]), "").reached is True
    assert make_row(size, what, spread([goal]), "").reached is False


def test_the_median_is_judged() -> None:
    assert make_row(10_000, report.READY, spread([0.5, 0.9, 30.0]), "s").reached is True


@pytest.mark.parametrize(
    ("size", "what"),
    [
        pytest.param(50, report.READY, id="a size nobody set a goal for"),
        pytest.param(10_000, report.PEAK, id="a figure without one"),
    ],
)
def test_a_row_without_a_goal_has_no_verdict(size: int, what: str) -> None:
    row = make_row(size, what, spread([1e9]), "s")
    assert (row.goal, row.reached) == (None, None)
    assert "NO" not in line_of(row)


def test_a_goal_may_be_given() -> None:
    assert make_row(50, report.GROWTH, spread([2.0]), "MiB", goal=1.0).reached is False


def test_what_has_no_figure_has_a_goal_and_no_verdict() -> None:
    row = make_row(10_000, report.READY, None, "s")
    assert (row.goal, row.reached) == (1.0, None)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param(
            make_row(10_000, report.READY, Spread(0.5, 0.4, 0.625), "s"),
            ["10,000", *report.READY.split(), "0.50", "(0.40-0.62)", "s", "<", "1", "yes"],
            id="with a spread",
        ),
        pytest.param(
            make_row(10_000, report.READY, spread([2]), "s"),
            ["10,000", *report.READY.split(), "2.00", "s", "<", "1", "NO"],
            id="missed, all rounds alike",
        ),
        pytest.param(
            make_row(50, "changes", spread([1234.5]), "1/s"), ["50", "changes", "1,234", "1/s"], id="a large figure"
        ),
    ],
)
def test_a_line_has_figure_goal_and_verdict(row: Row, words: list[str]) -> None:
    assert line_of(row).split() == words


def test_what_was_not_measured_says_why_below_the_table() -> None:
    text = format_table([Row(10_000, "starting", None, "", fault="it ended"), make_row(50, "x", spread([1]), "")])
    assert text.splitlines()[2].split() == ["10,000", "starting", "not", "measured"]
    assert text.splitlines()[-1] == "10,000, starting: not measured: it ended"


def test_everything_is_in_the_json() -> None:
    rows = [make_row(10_000, report.READY, spread([0.5, 0.7]), "s"), Row(50, "x", None, "", fault="why")]
    content = json.loads(json.dumps(to_json(rows, rounds=2)))
    assert content["rounds"] == 2
    assert content["rows"][0]["figure"] == {"median": 0.6, "low": 0.5, "high": 0.7}
    assert (content["rows"][0]["goal"], content["rows"][0]["reached"]) == (1.0, True)
    assert (content["rows"][1]["figure"], content["rows"][1]["fault"]) == (None, "why")
