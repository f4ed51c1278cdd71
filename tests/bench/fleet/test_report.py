from __future__ import annotations

import json

import pytest

from tests.bench.dns.prober import Probe
from tests.bench.fleet import report
from tests.bench.fleet.crowd import Event, Taken
from tests.bench.fleet.one_transfer import Transferred
from tests.bench.fleet.report import GOALS, NSD, OURS, UNITS, Row, format_table, make_rows, to_json
from tests.bench.fleet.samples import (
    Meanwhile,
    change_figures,
    changes_figures,
    one_figures,
    rollout_figures,
)
from tests.bench.kit.clock import CpuTime

MEANWHILE = Meanwhile(2.0, CpuTime(user=0.5, system=0.5, queued=0.1), Probe(1000, 3, 0, 0.2, 0.9, 1.8))
EVENTS = [Event("127.1.0.1", 7, 11.0), Event("127.1.0.2", 7, 14.0)]


def rows_of(*, ours: float, nsd: float | None) -> dict[tuple[str, str], Row]:
    key = (report.ROLLOUT, report.CPU)
    rounds = {OURS: [{key: ours}], NSD: [] if nsd is None else [{key: nsd}]}
    return {(row.workload, row.what): row for row in make_rows(rounds)}


@pytest.mark.parametrize(
    ("ours", "nsd", "reached"),
    [(20.0, 10.0, True), (20.1, 10.0, False), (1.0, None, None)],
)
def test_a_goal_beside_nsd_is_a_ratio(ours: float, nsd: float | None, *, reached: bool | None) -> None:
    row = rows_of(ours=ours, nsd=nsd)[report.ROLLOUT, report.CPU]
    assert row.reached is reached
    shown = format_table([row], [OURS, NSD], [])
    assert "<= 2 x nsd" in shown
    assert {True: "yes", False: "NO", None: "?"}[reached] in shown


def test_figures_are_medians_and_absolute_goals_are_bounds() -> None:
    key = (report.CHANGE, report.HAS_P99)
    rows = make_rows({OURS: [{key: 900.0}, {key: 1100.0}, {key: 950.0}]})
    assert [(row.figures[OURS].median, row.unit, row.reached) for row in rows] == [(950.0, "ms", True)]


def test_a_server_without_a_figure_leaves_its_cell_empty_and_its_fault_below() -> None:
    rows = make_rows({OURS: [{(report.ONE, report.AXFR): 5.0}], NSD: [{}]})
    shown = format_table(rows, [OURS, NSD], ["nsd: it does not serve"])
    assert shown.splitlines()[2].split() == ["one", "AXFR,", "p50", "ms", "5.00", "<", "3000", "yes"]
    assert shown.endswith("nsd: it does not serve\n")
    assert json.loads(json.dumps(to_json(rows, cpus=2)))["rows"][0]["figures"].keys() == {OURS}


def test_rows_come_by_workload() -> None:
    rows = make_rows({OURS: [{(report.CHANGE, report.CPU): 1.0, (report.ROLLOUT, report.CPU): 1.0}]})
    assert [row.workload for row in rows] == [report.ROLLOUT, report.CHANGE]


def test_every_goal_has_a_figure_with_a_unit() -> None:
    figures = {
        **rollout_figures(10.0, Taken(EVENTS, {"axfr": 2, "reset": 5}), MEANWHILE, memory=(1.0, 2.0)),
        **one_figures([Transferred(1.0, 5, 1)], [Transferred(0.5, 6, 2)], MEANWHILE),
        **change_figures([0.1, 0.3], 2, MEANWHILE),
        **changes_figures([0.2], done=99.0, versions=10, fetched=8.0, settled=0.4, meanwhile=MEANWHILE),
    }
    assert set(GOALS) <= set(figures)
    uncounted = {what for _, what in figures if what not in UNITS}
    assert uncounted == {report.REFUSED, report.ANSWERS_LOST}


def test_a_rollout_has_its_end_and_its_cost() -> None:
    figures = rollout_figures(10.0, Taken(EVENTS, {"axfr": 2, "reset": 5, "closed": 1}), MEANWHILE, memory=(1.0, 2.0))
    named = {what: value for (_, what), value in figures.items()}
    assert named[report.ALL_HAVE] == 4.0
    assert named[report.HALF_HAVE] == 1.0
    assert named[report.CPU] == pytest.approx(500.0)
    assert named[report.REFUSED] == 6.0
    assert named[report.QUEUED] == pytest.approx(5.0)
    assert named[report.ANSWERS_LOST] == 3.0


def test_figures_of_nothing_are_absent_not_zero() -> None:
    figures = change_figures([], 0, MEANWHILE)
    assert (report.CHANGE, report.HAS_P99) not in figures
    assert (report.CHANGE, report.CPU) not in figures
