from __future__ import annotations

import json

import pytest

from tests.bench.dns.disturbing import Disturbances, Disturbed
from tests.bench.dns.dnsperf import Report
from tests.bench.dns.goals import Goal, goal_for
from tests.bench.dns.peers import OURS, PEERS
from tests.bench.dns.prober import Probe
from tests.bench.dns.report import Row, format_table, make_rows
from tests.bench.dns.samples import AtRest, Sample, summarise_samples
from tests.bench.dns.workloads import WORKLOADS
from tests.bench.kit.clock import CpuTime
from tests.bench.kit.figures import rows_to_json
from tests.bench.kit.rounds import Measured
from tests.bench.limit.build import LIMIT

PROBE = Probe(1000, 0, 0, 0.1, 0.4, 1.5)
NO_DISTURBANCE = Disturbances()


def sample(qps: float, cpu_us: float, *, lost: int = 0) -> Sample:
    """A round of one second."""
    count = round(qps)
    report = Report(count + lost, count, lost, 1.0, qps, 0.5, {"NOERROR": count})
    return Sample(report, CpuTime(user=0.25 * cpu_us * qps / 1e6, system=0.75 * cpu_us * qps / 1e6), PROBE)


def resting(p50: float) -> Sample:
    return Sample(AtRest(100, 1.0), CpuTime(user=0.01, system=0.01), Probe(100, 0, 0, p50, p50, p50))


def rows_of(samples: dict[tuple[str, str], list[Sample]], **faults: str) -> dict[tuple[str, str], Row]:
    measured = Measured(samples, {("table", server): fault for server, fault in faults.items()})
    return {(row.workload, row.server): row for row in make_rows(measured, NO_DISTURBANCE)}


def test_figures_are_medians_over_rounds() -> None:
    summary = summarise_samples([sample(100_000, 6), sample(300_000, 2, lost=7), sample(120_000, 5)])
    assert summary.qps is not None
    assert (summary.qps.median, summary.qps.low, summary.qps.high) == (120_000, 100_000, 300_000)
    assert summary.cpu_us is not None
    assert summary.cpu_us.median == pytest.approx(5)
    assert summary.user_us is not None
    assert summary.user_us.median == pytest.approx(1.25)
    assert summary.busy is not None
    assert summary.busy.median == pytest.approx(0.6)
    assert (summary.completed, summary.lost, summary.errors) == (520_000, 7, 0)


def test_a_row_has_the_ratio_to_ours_and_whether_the_goal_is_reached() -> None:
    rows = rows_of(
        {
            ("table", "ours"): [sample(120_000, 5)],
            ("table", "nsd"): [sample(100_000, 6)],
            ("table", "dnsmasq"): [sample(100_000, 6)],
        }
    )
    nsd, dnsmasq, ours = rows["table", "nsd"], rows["table", "dnsmasq"], rows["table", "ours"]
    assert nsd.qps_ratio == pytest.approx(1.2)
    assert nsd.cpu_ratio == pytest.approx(5 / 6)
    assert (nsd.goal, nsd.reached) == ("q/s >= 1 x", True)
    assert (dnsmasq.goal, dnsmasq.reached) == ("q/s >= 1.3 x", False)
    assert (ours.goal, ours.reached, ours.qps_ratio) == ("", None, None)


def test_forwarding_is_held_to_processor_time() -> None:
    rows = rows_of({("forward", "ours"): [sample(30_000, 13)], ("forward", "dnsmasq"): [sample(60_000, 20)]})
    row = rows["forward", "dnsmasq"]
    assert (row.goal, row.reached) == ("CPU <= 0.7 x", True)


@pytest.mark.parametrize(
    ("workload", "goal", "reached"), [("100k", "q/s >= 0.95 x table", False), ("tap", "q/s >= 0.9 x table", True)]
)
def test_more_names_and_a_listener_are_compared_with_our_own_table(workload: str, goal: str, reached: bool) -> None:
    rows = rows_of({("table", "ours"): [sample(100_000, 5)], (workload, "ours"): [sample(94_000, 5)]})
    row = rows[workload, "ours"]
    assert row.qps_ratio == pytest.approx(0.94)
    assert (row.goal, row.reached) == (goal, reached)


@pytest.mark.parametrize(("theirs", "reached"), [(0.1, True), (0.05, False)])
def test_a_server_at_rest_is_held_to_the_time_of_an_answer(theirs: float, reached: bool) -> None:
    rows = rows_of({("rest-100", "ours"): [resting(0.12)], ("rest-100", "nsd"): [resting(theirs)]})
    row = rows["rest-100", "nsd"]
    assert row.p50_ratio == pytest.approx(0.12 / theirs)
    assert (row.goal, row.reached, row.qps_ratio) == ("p50 <= 1.2 x", reached, None)


def test_the_time_of_an_answer_after_a_load_is_no_ratio() -> None:
    rows = rows_of({("table", "ours"): [sample(120_000, 5)], ("table", "nsd"): [sample(100_000, 6)]})
    assert rows["table", "nsd"].p50_ratio is None


def test_without_ours_there_is_a_goal_and_no_verdict() -> None:
    row = rows_of({("table", "ours"): [], ("table", "nsd"): [sample(1, 1)]}, ours="it ended")["table", "nsd"]
    assert (row.goal, row.reached, row.qps_ratio) == ("q/s >= 1 x", None, None)


def test_a_server_that_answers_wrongly_stays_in_the_table_with_the_reason_below_it() -> None:
    measured = Measured({("table", "nsd"): [], ("table", "ours"): [sample(1, 1)]}, {("table", "nsd"): "rcode 5"})
    lines = format_table(make_rows(measured, NO_DISTURBANCE)).splitlines()
    assert [line.split()[:2] for line in lines[2:4]] == [["table", "nsd"], ["table", "ours"]]
    assert "not measured" in lines[2]
    assert lines[-1] == "table, nsd: not measured: rcode 5"


def test_a_disturbance_is_judged_by_the_median_p99_and_shows_the_worst_of_all() -> None:
    rounds = [
        Disturbed(Probe(1000, 0, 0, 0.1, p99, worst), 0.2, 0.0, 10, 2) for p99, worst in ((1, 9), (4, 5), (80, 90))
    ]
    (row,) = make_rows(Measured({}), Disturbances({"swap": rounds}))
    assert (row.reached, row.done, row.swaps) == (True, 30, 6)
    (line,) = [line for line in format_table([row]).splitlines() if line.startswith("during swap")]
    assert line.split()[-8:] == ["0.10", "4.00", "90.00", "p99", "<", "5", "ms", "yes"]


def test_everything_is_in_the_json() -> None:
    rows = make_rows(Measured({("table", "ours"): [sample(100, 5)]}), NO_DISTURBANCE)
    content = json.loads(json.dumps(rows_to_json(rows, rounds=1)))
    assert content["rounds"] == 1
    assert content["rows"][0]["summary"]["qps"] == {"median": 100, "low": 100, "high": 100}


def test_every_workload_is_held_to_a_goal_by_every_server_but_unbound_as_a_forwarder() -> None:
    # The C loop is no server, but what the system calls alone cost.
    without = {
        (workload.name, peer.label)
        for workload in WORKLOADS
        for peer in PEERS
        if peer.label not in {OURS, LIMIT}
        and workload.name in peer.workloads
        and goal_for(workload.name, peer.label) is None
    }
    assert without == {("forward", "unbound")}


@pytest.mark.parametrize(
    ("goal", "below", "above"),
    [
        pytest.param(Goal("q/s", 1.3), False, True, id="at least"),
        pytest.param(Goal("CPU", 0.7), True, False, id="at most"),
    ],
)
def test_a_bound_counts_as_reached(goal: Goal, below: bool, above: bool) -> None:
    assert goal.is_reached(goal.bound)
    assert goal.is_reached(goal.bound - 0.01) is below
    assert goal.is_reached(goal.bound + 0.01) is above
