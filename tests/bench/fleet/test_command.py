from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.bench.fleet import __main__ as command
from tests.bench.fleet.measuring import WORKLOADS
from tests.bench.fleet.primaries import KINDS, OURS
from tests.bench.fleet.run import Found, Options, chosen_workloads
from tests.kit.launched import ROOT

NAMES = [one.name for one in WORKLOADS]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments))


def find_every_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tests.bench.kit.command", "tests.bench.fleet.primaries"):
        monkeypatch.setattr(f"{module}.find_program", lambda name: name)


def test_help_has_every_workload() -> None:
    shown = run("--help").output
    for workload in WORKLOADS:
        assert workload.about in shown


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        pytest.param([], NAMES, id="nothing named: everything"),
        pytest.param(["changes", "one"], ["rollout", "one", "changes"], id="some, in our order, after the rollout"),
    ],
)
def test_only_what_is_named_is_measured(names: list[str], chosen: list[str]) -> None:
    assert [one.name for one in chosen_workloads(names)] == chosen


@pytest.mark.parametrize("server", [["nsd"], ["ours", "nsd"]])
def test_ours_is_measured_beside_what_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: list[str]
) -> None:
    seen: list[Options] = []

    def note(options: Options) -> Found:
        seen.append(options)
        return Found()

    find_every_program(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(command, "run_bench", note)
    run(*(f"--server={one}" for one in server), "--json", str(tmp_path / "bench.json"))
    assert [kind.label for kind in seen[0].kinds] == ["ours", "nsd"]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--workload", "rollouts"), id="unknown workload"),
        pytest.param(("--server", "knot"), id="unknown server"),
        pytest.param(("--names", "0"), id="no names"),
        pytest.param(("--secondaries", "0"), id="no secondaries"),
        pytest.param(("--secondaries", "10001"), id="more than there are sockets for"),
        pytest.param(("--zone", "other"), id="unknown zone"),
        pytest.param(("--seconds", "0.1"), id="next to no time"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


def test_where_nothing_was_measured_that_is_the_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find_every_program(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(command, "run_bench", lambda _: Found({OURS: [{}]}, ["ours: it does not serve"]))
    result = run("--json", str(tmp_path / "bench.json"))
    assert result.exit_code == 3
    assert "nothing of ours was measured" in result.stderr
    assert "ours: it does not serve" in result.stdout


def test_without_root_it_says_that_it_could_not_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    find_every_program(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run().exit_code == 3


@pytest.mark.peer("etcd", "kube-apiserver", "named", "nsd", "ip", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root")
def test_a_short_run_measures_everything(tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    small = ("--names", "300", "--secondaries", "20", "--changes", "2", "--seconds", "1", "--replicas", "1")
    found = subprocess.run(
        [sys.executable, "-m", "tests.bench.fleet", *small, "--rounds", "1", "--json", str(figures)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    content = json.loads(figures.read_text())
    assert content["faults"] == []
    rows = content["rows"]
    assert {row["workload"] for row in rows} == set(NAMES)
    assert {server for row in rows for server in row["figures"]} == {kind.label for kind in KINDS}
    for row in rows:
        if row["what"] == "connections refused or cut":
            assert not any(one["median"] for one in row["figures"].values())
