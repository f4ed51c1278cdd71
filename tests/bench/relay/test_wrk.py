from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.kit.faults import BadReport
from tests.bench.relay.wrk import SCRIPT, Report, make_command, parse_report

LINE = 'report {"requests": 1200, "seconds": 1.500000, "errors": 3, "p50_ms": 0.2500, "p99_ms": 2.0000}'


def test_the_report_of_our_script_is_read_wherever_it_stands() -> None:
    text = f"Running 1s test @ http://127.0.0.1:8080/\n  1 threads and 64 connections\n{LINE}\n"
    assert parse_report(text) == Report(1200, 1.5, 3, 0.25, 2.0)


def test_what_the_script_writes_is_what_is_read() -> None:
    form = SCRIPT[SCRIPT.index("'report") + 1 : SCRIPT.index("\\n'")]
    assert parse_report(form % (1, 1.0, 0, 0.1, 0.2)) == Report(1, 1.0, 0, 0.1, 0.2)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("unable to connect to 127.0.0.1:1 Connection refused", id="an error of wrk"),
        pytest.param("report ", id="cut before the figures"),
        pytest.param(LINE[:40], id="cut in the figures"),
        pytest.param('report {"requests": 1}', id="figures missing"),
        pytest.param(LINE.replace("}", ', "more": 1}'), id="a figure that is not known"),
        pytest.param("report [1, 2]", id="no names"),
        pytest.param(LINE.replace("1.500000", "nan?"), id="no number"),
    ],
)
def test_anything_else_is_an_error_and_no_figure(text: str) -> None:
    with pytest.raises(BadReport):
        parse_report(text)


@pytest.mark.parametrize(("keep_alive", "header"), [(True, False), (False, True)], ids=["keep-alive", "new"])
def test_connections_are_closed_only_where_that_is_the_workload(keep_alive: bool, header: bool) -> None:
    command = make_command("wrk", port=1, connections=64, seconds=2, keep_alive=keep_alive, script=Path("s.lua"))
    assert ("Connection: close" in command) is header
    assert {"-t1", "-c64", "-d2s"} <= set(command)
