from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.dns.dnsperf import Report, make_command, parse_report
from tests.bench.kit.faults import BadReport

REPORT = """\
DNS Performance Testing Tool
Version 2.10.0

[Status] Command line: dnsperf -s 127.0.0.1 -p 5300 -d queries -l 3
[Status] Sending queries (to 127.0.0.1:5300)
[Timeout] Query timed out: msg id 17
[Status] Testing complete (time limit)

Statistics:

  Queries sent:         501630
  Queries completed:    501624 (100.00%)
  Queries lost:         6 (0.00%)

  Response codes:       NOERROR 501600 (100.00%), SERVFAIL 20 (0.00%), REFUSED 4 (0.00%)
  Average packet size:  request 45, response 61
  Run time (s):         3.000093
  Queries per second:   167202.816712

  Average Latency (s):  0.000828 (min 0.000035, max 0.006801)
  Latency StdDev (s):   0.000769

"""
SILENT = """\
Statistics:

  Queries sent:         100
  Queries completed:    0 (0.00%)
  Queries lost:         100 (100.00%)

  Average packet size:  request 45, response 0
  Run time (s):         3.1
  Queries per second:   0.000000
"""


def test_a_report_is_read() -> None:
    assert parse_report(REPORT) == Report(
        sent=501630,
        completed=501624,
        lost=6,
        seconds=3.000093,
        qps=167202.816712,
        average_ms=0.828,
        rcodes={"NOERROR": 501600, "SERVFAIL": 20, "REFUSED": 4},
    )


def test_what_is_no_answer_counts_as_an_error() -> None:
    assert parse_report(REPORT).errors == 24


def test_a_server_that_says_nothing_gives_zeros_and_no_latency() -> None:
    report = parse_report(SILENT)
    assert (report.completed, report.lost, report.qps, report.average_ms, report.errors) == (0, 100, 0.0, 0.0, 0)


@pytest.mark.parametrize(
    "line", ["Queries sent", "Queries completed", "Queries lost", "Run time", "Queries per second"]
)
def test_a_missing_line_is_an_error_that_names_it(line: str) -> None:
    text = "\n".join(row for row in REPORT.splitlines() if line not in row)
    with pytest.raises(BadReport, match=line):
        parse_report(text)


@pytest.mark.parametrize("text", ["", "Warning: unable to connect", "Queries sent: many"])
def test_what_is_no_report_is_an_error(text: str) -> None:
    with pytest.raises(BadReport):
        parse_report(text)


def test_there_are_at_least_as_many_clients_as_threads() -> None:
    command = make_command("dnsperf", port=5300, queries=Path("queries"), seconds=0.5, threads=12)
    after = {option: command[command.index(option) + 1] for option in ("-c", "-T", "-l")}
    assert after == {"-c": "12", "-T": "12", "-l": "0.5"}
