from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.bench.dns import __main__ as command
from tests.bench.dns.disturbing import DISTURBANCES
from tests.bench.dns.peers import ours_with, peers_for
from tests.bench.dns.workloads import WORKLOADS
from tests.kit.launched import ROOT


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments), env=environment)


def test_help_has_every_workload_and_disturbance() -> None:
    shown = run("--help").output
    for thing in (*WORKLOADS, *DISTURBANCES):
        assert f"    {thing.name} " in shown
    assert "Examples:" in shown


@pytest.mark.parametrize(
    ("workload", "disturb", "counts"),
    [
        pytest.param((), (), (len(WORKLOADS), len(DISTURBANCES)), id="nothing named: everything"),
        pytest.param(("table", "100k"), (), (2, 0), id="workloads alone"),
        pytest.param((), ("all",), (0, len(DISTURBANCES)), id="disturbances alone"),
        pytest.param(("table",), ("swap",), (1, 1), id="both"),
    ],
)
def test_only_what_is_named_is_measured(
    workload: tuple[str, ...], disturb: tuple[str, ...], counts: tuple[int, int]
) -> None:
    options = command.make_options(workload=workload, disturb=disturb, rounds=1, seconds=1)
    assert (len(options.workloads), len(options.disturbances)) == counts


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--workload", "tables"), id="unknown workload"),
        pytest.param(("--rounds", "0"), id="no rounds"),
        pytest.param(("--seconds", "0"), id="no time"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


def test_without_dnsperf_it_says_that_it_could_not_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_program", lambda _: None)
    result = run("--workload", "table")
    assert result.exit_code == 3
    assert "dnsperf is not installed" in result.stderr


def test_a_missing_peer_is_an_error_where_peers_are_demanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_program", lambda name: name)
    monkeypatch.setattr(command, "missing_programs", lambda: ["unbound"])
    result = run("--workload", "table", REQUIRE_PEERS="1")
    assert result.exit_code == 3
    assert "unbound" in result.stderr


@pytest.mark.peer("dnsperf", "nsd")
def test_a_short_run_measures_us_and_nsd(tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    servers = ("--server", "ours", "--server", "nsd")
    arguments = (*servers, "--rounds", "1", "--seconds", "0.5", "--workload", "table", "--json", str(figures))
    found = subprocess.run(
        [sys.executable, "-m", "tests.bench.dns", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    rows = {row["server"]: row for row in json.loads(figures.read_text())["rows"]}
    for server in ("ours", "nsd"):
        assert not rows[server]["fault"], rows[server]
        assert rows[server]["summary"]["completed"] > 0
    assert "reached" in found.stdout


def test_only_the_named_servers_are_measured_and_ours_with_other_pythons_after_ours() -> None:
    more = [ours_with("ours, another", sys.executable)]
    both = [peer.label for peer in peers_for("table", servers=("ours",), more=more)]
    assert both == ["ours", "ours, another"]
    assert [peer.label for peer in peers_for("table", servers=("no such",), more=more)] == ["ours, another"]
    assert "ours, another" not in [peer.label for peer in peers_for("tap", more=more)]


def test_a_python_that_cannot_be_used_ends_with_3(tmp_path: Path) -> None:
    result = run("--workload", "table", "--python", str(tmp_path / "python3.99"))
    assert (result.exit_code, result.stdout) == (3, "")
    assert "python3.99" in result.stderr
