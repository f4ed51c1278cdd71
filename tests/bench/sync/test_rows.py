from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.bench.dns.prober import LOST_MS, Probe
from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import Spread
from tests.bench.sync import report
from tests.bench.sync.memory import Memory
from tests.bench.sync.report import Row
from tests.bench.sync.rows import (
    changed_rows,
    created_rows,
    growth_rows,
    informer_rows,
    kind_rows,
    mixed_rows,
    percentile_row,
    probed_rows,
    start_rows,
)
from tests.bench.sync.samples import Changed, Created, Creation, Probed, Start, Use

SIZE = 10_000
USE = Use(2.0, CpuTime(user=0.6, system=0.4, queued=0.1))


def probed(p99: float | None, worst: float | None = None, *, lost: int = 0) -> Probed:
    return Probed(USE, Probe(1000, lost, 0, p99, p99, worst))


def medians(rows: Sequence[Row]) -> dict[str, float | None]:
    return {row.what: row.figure.median if row.figure else None for row in rows}


def test_a_start_has_its_times_and_its_memory() -> None:
    rows = start_rows(
        SIZE, [Start(USE, Memory(50, 60), 45, 7.0), Start(Use(4.0, CpuTime(queued=2.0)), Memory(70, 80), 65, 9.0)]
    )
    assert [(row.figure, row.unit) for row in rows] == [
        (Spread(3.0, 2.0, 4.0), "s"),
        (Spread(0.5, 0.0, 1.0), "s"),
        (Spread(8.0, 7.0, 9.0), "s"),
        (Spread(1.05, 0.1, 2.0), "s"),
        (Spread(60, 50, 70), "MiB"),
        (Spread(55, 45, 65), "MiB"),
        (Spread(70, 60, 80), "MiB"),
    ]
    assert [row.goal for row in rows] == [1.0, None, None, None, 100, None, None]


def test_another_way_to_start_has_rows_of_its_own_and_no_goals() -> None:
    rows = start_rows(SIZE, [Start(USE, Memory(50, 60), 45, 7.0)], suffix=", otherwise")
    assert all(row.what.endswith(", otherwise") and row.goal is None for row in rows)


def test_answers_have_p99_worst_lost_and_how_the_server_had_the_processor() -> None:
    rows = probed_rows(SIZE, report.SYNC_P99, [probed(1.0, 9.0), probed(3.0, 5.0, lost=2), probed(2.0, 7.0)])
    assert medians(rows) == {
        report.SYNC_P99: 2.0,
        "answers while it syncs, worst": 7.0,
        "answers while it syncs, lost": 0,
        "answers while it syncs, on the processor": 50,
        "answers while it syncs, in the queue": pytest.approx(5),
    }
    assert rows[0].reached is True


def test_a_probe_that_sent_nothing_has_no_figure() -> None:
    rows = probed_rows(SIZE, report.SYNC_P99, [probed(None)])
    assert (rows[0].figure, rows[0].reached, rows[1].figure) == (None, None, None)


def test_lost_answers_miss_the_goal() -> None:
    assert probed_rows(SIZE, report.SYNC_P99, [probed(LOST_MS, LOST_MS, lost=20)])[0].reached is False


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([], 0.99, None, id="of nothing"),
        pytest.param([7.0], 0.5, 7.0, id="of one"),
        pytest.param([float(value) for value in range(100, 0, -1)], 0.5, 50.0, id="the middle, in any order"),
        pytest.param([float(value) for value in range(1, 101)], 0.99, 99.0, id="near the end"),
        pytest.param([1.0] * 99 + [5000.0], 0.99, 1.0, id="one in a hundred may be late"),
        pytest.param([1.0] * 98 + [5000.0] * 2, 0.99, 5000.0, id="two may not"),
    ],
)
def test_a_percentile_is_a_row(values: list[float], share: float, expected: float | None) -> None:
    row = percentile_row(SIZE, report.ANSWERED_P99, values, share)
    assert (row.figure and row.figure.median) == expected
    assert row.reached is (None if expected is None else expected < 100)
    assert row.unit == "ms"


def test_creations_of_all_rounds_count_together() -> None:
    fast, slow = Creation(0.003, 0.002), Creation(0.005, 0.4)
    rows = created_rows(SIZE, [Created(USE, [fast] * 97), Created(USE, [slow] * 3)])
    found = medians(rows)
    assert (found[report.ANSWERED_P50], found[report.ANSWERED_P99]) == (2.0, 400.0)
    assert found["the API server's own time to create, p50"] == 3.0
    assert [row.reached for row in rows[:2]] == [True, False]


def test_each_kind_has_its_middle_and_says_which_it_is() -> None:
    rows = kind_rows(SIZE, [Created(USE, [Creation(0.003, 0.002, "Site"), Creation(0.003, 0.004, "Route")])] * 2)
    assert medians(rows) == {"created to answered, Site, p50": 2.0, "created to answered, Route, p50": 4.0}


def test_rows_of_mixed_kinds_have_goals_of_their_own() -> None:
    start = start_rows(100_000, [Start(Use(9.0, CpuTime()), Memory(320, 330), 310, 20.0)])
    probes = probed_rows(100_000, report.SYNC_P99, [probed(7.0, 9.0)])
    created = created_rows(100_000, [Created(USE, [Creation(0.003, 0.12)])])
    rows = mixed_rows(start, probes, created)
    assert [row.what for row in rows] == [f"mixed kinds, {row.what}" for row in (*start, *probes, *created)]
    assert [row.figure for row in rows] == [row.figure for row in (*start, *probes, *created)]
    goals = {row.what.removeprefix("mixed kinds, "): (row.goal, row.reached) for row in rows if row.goal is not None}
    assert goals == {report.READY: (10, True), report.RESIDENT: (350, True), report.ANSWERED_P99: (100, False)}


def test_changes_have_their_rate_their_lag_and_no_growth_of_a_short_time() -> None:
    rows = changed_rows(SIZE, [Changed(probed(2.0, 3.0), rate=998.0, lag=0.02, memory=[Memory(50, 50)] * 3)])
    found = medians(rows)
    assert (found[report.CHANGES_P99], found["changes made a second"], found["last change to its answer"]) == (
        2.0,
        998.0,
        20.0,
    )
    assert report.GROWTH not in found


@pytest.mark.parametrize(
    ("resident", "growth", "reached"),
    [
        pytest.param([50.0] * 20, 0.0, True, id="flat"),
        pytest.param([40.0] * 5 + [60.0] * 15, 0.0, True, id="warm-up counts for nothing"),
        pytest.param([float(50 + value) for value in range(20)], 10.0, False, id="growing"),
        pytest.param([60.0] * 10 + [50.0] * 10, -10.0, True, id="what falls is flat"),
    ],
)
def test_memory_is_held_to_flatness(resident: list[float], growth: float, reached: bool) -> None:
    (row,) = growth_rows(SIZE, [[Memory(one, 99) for one in resident]])
    assert row.figure is not None
    assert row.figure.median == pytest.approx(growth)
    assert row.reached is reached


def test_an_informer_has_its_time_and_its_memory() -> None:
    assert [row.figure for row in informer_rows(SIZE, 9.0, Memory(200, 300))] == [
        Spread(9.0, 9.0, 9.0),
        Spread(200, 200, 200),
        Spread(300, 300, 300),
    ]
