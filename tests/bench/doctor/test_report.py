from __future__ import annotations

import pytest

from tests.bench.doctor.audit import parse_requests
from tests.bench.doctor.commands import PEAK, SECONDS
from tests.bench.doctor.report import format_table, make_rows
from tests.bench.doctor.samples import Sample
from tests.bench.kit.command_rows import Row
from tests.bench.kit.figures import Spread


def sample(seconds: float = 1.0, peak: float = 80.0) -> Sample:
    return Sample(0, seconds, 0.5, peak, 8, 0.25)


def test_a_command_has_its_own_goal_and_what_it_cost_the_api_server() -> None:
    rows = {row.what: row for row in make_rows("status", "pod", [sample(3.0), sample(1.0), sample(1.2)])}
    assert (rows["time"].goal, rows["time"].reached) == (SECONDS["status"], True)
    assert rows["requests"].figure == Spread(8, 8, 8)
    assert rows["requests"].way == "pod"


@pytest.mark.parametrize(
    ("seconds", "peak", "reached"),
    [
        pytest.param(SECONDS["host"], PEAK, (True, True), id="just reached"),
        pytest.param(SECONDS["host"] + 0.01, PEAK + 0.1, (False, False), id="just missed"),
    ],
)
def test_a_goal_is_reached_or_not(seconds: float, peak: float, reached: tuple[bool, bool]) -> None:
    rows = {row.what: row for row in make_rows("host", "pod", [sample(seconds, peak)])}
    assert (rows["time"].reached, rows["peak resident"].reached) == reached
    assert ("NO" in format_table(list(rows.values()))) is (reached == (False, False))


def test_another_size_has_no_goals() -> None:
    assert not [row for row in make_rows("host", "pod", [sample()], has_goals=False) if row.goal is not None]


def test_a_command_that_asks_no_api_server_has_no_requests() -> None:
    assert [row.what for row in make_rows("table", "", [sample()])] == ["time", "processor time", "peak resident"]


def test_another_checkout_stands_beside() -> None:
    shown = format_table(make_rows("host", "pod", [sample(1.0)], [sample(2.0)]))
    assert "ours / beside" in shown
    assert "0.50" in shown
    assert "beside" not in format_table(make_rows("host", "pod", [sample()]))


def test_what_was_not_measured_says_why() -> None:
    shown = format_table([Row("host", "everything", None, "", fault="it ended with status 3", way="pod")])
    assert "not measured" in shown
    assert "host pod: not measured: it ended with status 3" in shown


def test_a_request_counts_once_when_it_is_answered() -> None:
    lines = [
        '{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/services?watch=1"}',
        '{"stage":"ResponseComplete","verb":"get","requestURI":"/version"}',
        '{"stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/nodes?limit=50"}',
    ]
    assert parse_requests("\n".join(lines)) == ["get /version", "list /api/v1/nodes?limit=50"]
