from __future__ import annotations

import json

import pytest

from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import rows_to_json
from tests.bench.kit.rounds import Measured
from tests.bench.relay.goals import Goal, goals_for
from tests.bench.relay.peers import DIRECT, GO, HAPROXY, HAPROXY_SPLICE, OURS
from tests.bench.relay.report import HEAD, Row, format_others, format_table, make_rows
from tests.bench.relay.samples import Sample, summarise_samples
from tests.bench.relay.workloads import WORKLOADS, Kind


def requests(cpu_us: float, *, rate: float = 1000) -> Sample:
    """A round of one second."""
    return Sample(rate, 1.0, CpuTime(user=cpu_us * rate / 4e6, system=cpu_us * rate * 3 / 4e6), 0.5, 2.0)


def bulk(cpu_ms: float, *, mb: float) -> Sample:
    """A round of one second."""
    return Sample(mb / 1000, 1.0, CpuTime(system=cpu_ms * mb / 1e6))


def rows_of(samples: dict[tuple[str, str], list[Sample]], **faults: str) -> dict[tuple[str, str], Row]:
    measured = Measured(samples, {("new", relay): fault for relay, fault in faults.items()})
    return {(row.workload, row.relay): row for row in make_rows(WORKLOADS, measured)}


def test_figures_are_medians_over_rounds() -> None:
    summary = summarise_samples([requests(80), requests(300), requests(100)])
    assert summary.cpu_us is not None
    assert (summary.cpu_us.low, summary.cpu_us.median, summary.cpu_us.high) == pytest.approx((80, 100, 300))
    assert summary.user_us is not None
    assert summary.user_us.median == pytest.approx(25)
    assert summary.busy is not None
    assert summary.busy.median == pytest.approx(0.1)


def test_requests_are_held_to_processor_time_against_both() -> None:
    rows = rows_of({("new", OURS): [requests(100)], ("new", HAPROXY): [requests(100)], ("new", GO): [requests(110)]})
    assert rows["new", HAPROXY].reached == [True]
    assert rows["new", GO].reached == [False]
    assert rows["new", OURS].goals == []


@pytest.mark.parametrize("relay", [HAPROXY, HAPROXY_SPLICE])
def test_bulk_is_held_to_processor_time_and_to_the_rate(relay: str) -> None:
    rows = rows_of({("download", OURS): [bulk(100, mb=900)], ("download", relay): [bulk(250, mb=1000)]})
    row = rows["download", relay]
    assert (row.cpu_ratio, row.rate_ratio) == pytest.approx((0.4, 0.9))
    assert row.reached == [True, False]
    assert "yes, NO" in format_table([row])


def test_idle_connections_are_held_to_memory_alone() -> None:
    ours, its = Sample(3000, 2.0, memory_kib=3.0), Sample(3000, 1.0, memory_kib=2.0)
    row = rows_of({("idle", OURS): [ours], ("idle", HAPROXY): [its]})["idle", HAPROXY]
    assert row.memory_ratio == pytest.approx(1.5)
    assert row.rate_ratio is None
    assert row.reached == [True]


def test_latency_is_what_a_relay_adds_to_none() -> None:
    def asked(p50: float, p99: float, cpu: CpuTime | None) -> list[Sample]:
        return [Sample(1000, 1.0, cpu, p50, p99, 7.5, held_up=0.25)]

    rows = rows_of(
        {("latency", OURS): asked(0.09, 0.5, CpuTime(0.1, 0.1)), ("latency", DIRECT): asked(0.04, 0.1, None)}
    )
    ours, direct = rows["latency", OURS], rows["latency", DIRECT]
    assert (ours.added_p50_ms, ours.added_p99_ms) == pytest.approx((0.05, 0.4))
    assert direct.cpu_ratio is None
    lines = format_table([ours, direct]).splitlines()
    assert "+0.050" in lines[2]
    assert lines[2].split()[-4:-1] == ["+0.400", "7.500", "25%"]
    assert " 0.040" in lines[3]


def test_without_ours_there_is_a_goal_and_no_verdict() -> None:
    row = rows_of({("new", OURS): [], ("new", HAPROXY): [requests(100)]}, ours="it ended")["new", HAPROXY]
    assert row.goals
    assert row.reached == [None]


def test_a_relay_that_failed_stays_in_the_table_with_the_reason_below_it() -> None:
    rows = rows_of({("new", OURS): [requests(100)], ("new", HAPROXY): []}, haproxy="no answer")
    lines = format_table(list(rows.values())).splitlines()
    assert "not measured" in lines[3]
    assert lines[-1] == "new, haproxy: not measured: no answer"


def test_every_row_has_every_column_and_all_is_in_the_json() -> None:
    rows = list(rows_of({("new", OURS): [requests(100)], ("idle", OURS): [Sample(1, 1.0, memory_kib=3)]}).values())
    assert all(heading in format_table(rows).splitlines()[0] for heading in HEAD)
    content = json.loads(json.dumps(rows_to_json(rows, rounds=1)))
    assert content["rows"][0]["summary"]["cpu_us"]["median"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("goal", "below", "above"),
    [
        pytest.param(Goal("rate", 1.0), False, True, id="at least"),
        pytest.param(Goal("CPU", 0.5), True, False, id="at most"),
    ],
)
def test_a_bound_counts_as_reached(goal: Goal, below: bool, above: bool) -> None:
    assert goal.is_reached(goal.bound)
    assert goal.is_reached(goal.bound - 0.01) is below
    assert goal.is_reached(goal.bound + 0.01) is above


def test_every_kind_has_a_goal_against_haproxy() -> None:
    assert all(goals_for(kind, HAPROXY) for kind in Kind)


@pytest.mark.parametrize(
    ("ours", "its", "reached"),
    [
        pytest.param(0.9, 0.9, True, id="as much as haproxy adds"),
        pytest.param(0.91, 0.9, False, id="more"),
        pytest.param(0.2, 0.1, None, id="haproxy adds nothing, which is noise"),
        pytest.param(0.2, 0.05, None, id="haproxy adds less than nothing"),
    ],
)
def test_latency_is_held_to_the_p99_that_haproxy_adds(ours: float, its: float, reached: bool | None) -> None:
    def asked(p99: float) -> list[Sample]:
        return [Sample(1000, 1.0, None, 0.05, p99)]

    rows = rows_of({("latency", OURS): asked(ours), ("latency", HAPROXY): asked(its), ("latency", DIRECT): asked(0.1)})
    assert rows["latency", HAPROXY].reached == [reached]


def test_without_a_request_past_no_relay_there_is_no_verdict_on_latency() -> None:
    samples = {("latency", relay): [Sample(1000, 1.0, None, 0.05, 0.9)] for relay in (OURS, HAPROXY)}
    assert rows_of(samples)["latency", HAPROXY].reached == [None]


def test_ours_with_another_python_has_its_own_ratios_and_verdicts() -> None:
    other = f"{OURS}, python3.13"
    samples = {("new", OURS): [requests(120)], ("new", other): [requests(100)], ("new", HAPROXY): [requests(100)]}
    rows = make_rows(WORKLOADS, Measured(samples), ours=other)
    lines = format_others({other: rows}).splitlines()
    assert len(lines) == 3
    assert lines[2].split()[:2] == ["new", "ours,"]
    assert "1.00" in lines[2]
    assert lines[2].endswith("yes")
    assert make_rows(WORKLOADS, Measured(samples))[2].reached == [False]
