from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.bench.sync import __main__ as command
from tests.bench.sync.measuring import MEASUREMENTS
from tests.bench.sync.report import GOALS
from tests.kit.launched import ROOT

NAMES = [one.name for one in MEASUREMENTS]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command.main, list(arguments))


def options(**values: Any) -> Any:
    usual: dict[str, Any] = {
        "size": (10,),
        "measure": (),
        "fill": False,
        "profile": False,
        "rounds": 1,
        "tries": 1,
        "seconds": 1.0,
    }
    return command.make_options(**(usual | values))


def test_help_has_every_measurement() -> None:
    shown = run("--help").output
    for measurement in MEASUREMENTS:
        assert f"    {measurement.name} " in shown
        assert measurement.about in shown
    assert "Examples:" in shown


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        pytest.param({}, NAMES, id="nothing named: everything"),
        pytest.param({"measure": ("all",)}, NAMES, id="everything by name"),
        pytest.param({"measure": ("changes", "start")}, ["start", "changes"], id="some, in our order"),
        pytest.param({"fill": True}, [], id="only to fill"),
        pytest.param({"profile": True}, [], id="only a profile"),
        pytest.param({"profile": True, "measure": ("start",)}, ["start"], id="a profile too"),
    ],
)
def test_only_what_is_named_is_measured(values: dict[str, Any], chosen: list[str]) -> None:
    assert [one.name for one in options(**values).measurements] == chosen


def test_a_size_that_is_named_twice_is_measured_once() -> None:
    assert options(size=(7, 5, 7)).sizes == (7, 5)


def test_there_is_a_goal_for_every_size_that_is_measured_unless_one_is_named() -> None:
    sizes = next(parameter.default for parameter in command.main.params if parameter.name == "size")
    assert {size for size, _ in GOALS} == set(sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--measure", "starts"), id="unknown measurement"),
        pytest.param(("--size", "0"), id="no Ingresses"),
        pytest.param(("--size", "1000001"), id="too many Ingresses"),
        pytest.param(("--size", "many"), id="no number"),
        pytest.param(("--rounds", "0"), id="no rounds"),
        pytest.param(("--tries", "0"), id="no tries"),
        pytest.param(("--seconds", "0.1"), id="next to no time"),
        pytest.param(("--sizes", "10"), id="unknown option"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


@pytest.mark.peer("etcd", "kube-apiserver")
def test_a_short_run_measures_a_start_changes_and_the_informer(tmp_path: Path) -> None:
    figures = tmp_path / "bench.json"
    measured = ("--measure", "start", "--measure", "changes", "--measure", "informer")
    size = ("--size", "50", "--rounds", "1", "--tries", "1", "--seconds", "0.5")
    arguments = (*measured, *size, "--json", str(figures))
    found = subprocess.run(
        [sys.executable, "-m", "tests.bench.sync", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    rows = json.loads(figures.read_text())["rows"]
    assert not [row for row in rows if row["fault"] or row["figure"] is None]
    for start in ("start to ready", "answers during", "kubernetes informer"):
        assert any(row["what"].startswith(start) for row in rows), start
    assert "reached" in found.stdout
