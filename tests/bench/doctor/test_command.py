from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.bench.doctor import __main__ as command
from tests.bench.doctor.commands import COMMANDS, SECONDS
from tests.bench.doctor.objects import Size
from tests.kit.launched import ROOT

NAMES = [one.name for one in COMMANDS]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments))


def options(**values: Any) -> Any:
    usual: dict[str, Any] = {"commands": (), "ingresses": 1, "services": 2, "nodes": 3}
    return command.make_options(**(usual | values))


def test_help_has_every_command() -> None:
    shown = run("--help").output
    for one in COMMANDS:
        assert f"    {one.name} " in shown
        assert one.about in shown
    assert "Examples:" in shown


def test_every_goal_is_that_of_a_command() -> None:
    assert set(SECONDS) <= set(NAMES)


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        pytest.param((), NAMES, id="nothing named: everything"),
        pytest.param(("all", "status"), ["status", "all"], id="some, in our order"),
    ],
)
def test_only_what_is_named_is_measured(named: tuple[str, ...], chosen: list[str]) -> None:
    found = options(commands=named)
    assert [one.name for one in found.commands] == chosen
    assert found.size == Size(1, 2, 3)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--command", "serve"), id="unknown command"),
        pytest.param(("--ingresses", "0"), id="no Ingresses"),
        pytest.param(("--ingresses", "100001"), id="more Ingresses than numbers"),
        pytest.param(("--services", "20001"), id="more Services than addresses"),
        pytest.param(("--nodes", "-1"), id="fewer nodes than none"),
        pytest.param(("--nodes", "many"), id="no number"),
        pytest.param(("--rounds", "0"), id="no rounds"),
        pytest.param(("--beside", "/nowhere"), id="no checkout"),
        pytest.param(("--size", "10"), id="unknown option"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


@pytest.mark.peer("etcd", "kube-apiserver")
def test_a_short_run_measures_what_asks_the_cluster_and_what_does_not(tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    size = ("--ingresses", "20", "--services", "10", "--nodes", "3", "--rounds", "1")
    arguments = (*size, "--command", "status", "--command", "table", "--json", str(figures))
    found = subprocess.run(
        [sys.executable, "-m", "tests.bench.doctor", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    rows = json.loads(figures.read_text())["rows"]
    assert not [row for row in rows if row["fault"] or row["figure"] is None]
    assert {row["command"] for row in rows} == {"status", "table"}
    assert all(row["figure"]["median"] for row in rows if row["what"] == "requests")
    assert "reached" in found.stdout
