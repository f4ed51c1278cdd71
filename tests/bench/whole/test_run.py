"""A part that fails or hangs ends alone; those that follow are measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from docs.speed.run import Figure, Row
from tests.bench.whole import run
from tests.bench.whole.part import Part
from tests.bench.whole.plan import Cost

GOOD = "; ".join(
    [
        "import json, pathlib, sys",
        "pathlib.Path(sys.argv[-1]).write_text(json.dumps({'value': 3}))",
        "print('[1/1] it runs', file=sys.stderr)",
    ]
)


@dataclass(frozen=True, slots=True)
class Scripted(Part):
    """A part that runs a script of Python."""

    def command(self, rounds: int, *, quick: bool) -> list[str]:
        return ["-c", self.module, f"{rounds}", f"{quick}"]


def read(content: Mapping[str, Any]) -> Iterator[Row]:
    yield Row("x", "value", "A value", "", "lower", {"Switchback": Figure(content["value"], 1, 5)})


def part(script: str = GOOD, name: str = "one", **more: Any) -> Part:
    return Scripted(name, script, "One", "It measures", read, Cost(1, 1, most=1), **more)


def measure(folder: Path, *parts: Part, seconds: float = 60, quick: bool = False) -> tuple[run.Found, list[str]]:
    said: list[str] = []
    return run.run_parts(
        parts, seconds=seconds, quick=quick, folder=folder, tell=lambda text, _: said.append(text)
    ), said


def test_the_rows_of_a_part_are_its_own_and_its_steps_are_told(tmp_path: Path) -> None:
    found, said = measure(tmp_path, part())
    assert [(row.bench, row.id) for row in found.rows] == [("one", "value")]
    assert said == ["one: [1/1] it runs"]
    assert not found.has_failed
    assert json.loads((tmp_path / "one.json").read_text()) == {"value": 3}


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        pytest.param("import sys; sys.exit('out of order')", "exit status 1: out of order", id="it fails"),
        pytest.param("", "its figures cannot be read", id="it writes nothing"),
        pytest.param(GOOD.replace("'value'", "'other'"), "its figures cannot be read", id="it writes another form"),
        pytest.param(
            GOOD.replace("json.dumps({'value': 3})", "'{'"), "its figures cannot be read", id="it writes half a file"
        ),
    ],
)
def test_a_part_that_fails_ends_alone(tmp_path: Path, script: str, trouble: str) -> None:
    found, _ = measure(tmp_path, part(script, "bad"), part())
    bad, one = found.benches
    assert bad.failed
    assert trouble in bad.trouble
    assert found.has_failed
    assert not one.failed
    assert [row.bench for row in found.rows] == ["one"]


def test_figures_that_were_written_before_a_failure_count(tmp_path: Path) -> None:
    found, _ = measure(tmp_path, part(f"{GOOD}; sys.exit(3)"))
    assert len(found.rows) == 1
    assert found.benches[0].failed


def test_figures_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"value": 3}')
    found, _ = measure(tmp_path, part("import sys; sys.exit(3)"))
    assert found.rows == []


def test_a_part_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_SPARE_SECONDS", 0.0)
    monkeypatch.setattr(run, "_PATIENCE", 0.5)
    found, _ = measure(tmp_path, part("import time; time.sleep(600)"), part())
    assert "it took longer than" in found.benches[0].trouble
    assert found.benches[0].failed


@pytest.mark.parametrize(
    ("one", "seconds", "trouble"),
    [
        pytest.param(part(needs=("no-such-program",)), 60, "not installed: no-such-program", id="a missing program"),
        pytest.param(replace(part(), cost=Cost(100, 1)), 60, "no time for it: 1.0 minutes were left", id="no time"),
    ],
)
def test_what_cannot_be_measured_has_a_reason_and_is_no_failure(
    tmp_path: Path, one: Part, seconds: float, trouble: str
) -> None:
    found, _ = measure(tmp_path, one, seconds=seconds)
    assert trouble in found.benches[0].trouble
    assert not found.has_failed


def test_without_root_a_part_that_takes_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert part(root=True).obstacle() == "network namespaces take root"


def test_in_quick_mode_a_part_has_one_round_whatever_the_time(tmp_path: Path) -> None:
    script = GOOD.replace("print(", "print(sys.argv[1:3], ")
    _, said = measure(tmp_path, part(script), seconds=1, quick=True)
    assert said == ["one: ['1', 'True'] [1/1] it runs"]
