"""A part that fails or hangs ends alone; those that follow are measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    how: dict[str, Any] = {"read": read, "cost": Cost(1, 1, most=1), **more}
    return Scripted(name, script, "One", "It measures", **how)


def measure(
    folder: Path, *parts: Part, seconds: float = 60, quick: bool = False, whole: bool = False
) -> tuple[run.Found, list[str]]:
    said: list[str] = []
    return run.run_parts(
        parts, seconds=seconds, quick=quick, whole=whole, folder=folder, tell=lambda text, _: said.append(text)
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


UNHURRIED = Cost(20, 20, most=1)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part may take half its estimate, and a second: enough for UNHURRIED, however busy the machine."""
    monkeypatch.setattr(run, "_SPARE_SECONDS", 1.0)
    monkeypatch.setattr(run, "_PATIENCE", 0.5)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("import time; time.sleep(600)", id="it hangs"),
        pytest.param("import os, time; os.close(2); time.sleep(600)", id="it closes its output first"),
        pytest.param(
            "import subprocess, time; subprocess.Popen(['sleep', '20']); time.sleep(600)",
            id="a program that it started keeps its output open",
        ),
    ],
)
def test_a_part_that_takes_too_long_is_ended(tmp_path: Path, script: str) -> None:
    begun = time.monotonic()
    found, _ = measure(tmp_path, part(script, "long"), part(cost=UNHURRIED))
    assert time.monotonic() - begun < 15
    assert "it took longer than" in found.benches[0].trouble
    assert found.benches[0].failed
    assert [row.bench for row in found.rows] == ["one"]


def test_a_program_that_a_part_left_behind_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    begun = time.monotonic()
    found, said = measure(tmp_path, part(f"{GOOD}; import subprocess; subprocess.Popen(['sleep', '20'])"))
    assert time.monotonic() - begun < 15
    assert said == ["one: [1/1] it runs"]
    assert not found.has_failed


def test_the_last_words_of_a_part_are_its_trouble_with_or_without_an_end_of_line(tmp_path: Path) -> None:
    found, said = measure(tmp_path, part("import sys; sys.stderr.write('one\\n\\ntwo'); sys.exit(3)"))
    assert found.benches[0].trouble == "exit status 3: two"
    assert said == ["one: one", "one: two"]
    assert (tmp_path / "one.log").read_text() == "one\n\ntwo"


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("script", ["import time; time.sleep(600)", "import time; time.sleep(1); raise SystemExit(1)"])
def test_what_a_failed_part_took_says_nothing_about_the_others(tmp_path: Path, script: str) -> None:
    bad = part(script, "bad", cost=Cost(0.1, 0.1, most=1))
    # Were it slow as the bad one, the other would take more than a hundred seconds.
    found, _ = measure(tmp_path, bad, part(cost=UNHURRIED), seconds=60)
    assert [bench.failed for bench in found.benches] == [True, False]
    assert [row.bench for row in found.rows] == ["one"]


def test_a_run_of_everything_leaves_no_part_out_for_lack_of_time(tmp_path: Path) -> None:
    found, _ = measure(tmp_path, part(cost=Cost(100, 1)), seconds=1, whole=True)
    assert [row.bench for row in found.rows] == ["one"]
    assert (found.benches[0].trouble, found.benches[0].rounds) == ("", 1)


def read_without_ours(_: Mapping[str, Any]) -> Iterator[Row]:
    for name in ("value", "other"):
        yield Row("x", name, f"A {name}", "", "lower", {"NSD": Figure(1, 1, 5)}, faults={"Switchback": "it ended"})


def read_without_a_peer(_: Mapping[str, Any]) -> Iterator[Row]:
    yield Row("x", "value", "A value", "", "lower", {"Switchback": Figure(1, 1, 5)}, faults={"NSD": "it ended"})


@pytest.mark.parametrize(
    ("one", "trouble"),
    [
        pytest.param(part(read=read_without_ours), "A value: it ended", id="ours has no figure"),
        pytest.param(part(read=read_without_a_peer), "", id="a peer has no figure"),
        pytest.param(part(faults=lambda _: ["a start: it ended"]), "a start: it ended", id="a fault without a row"),
        pytest.param(part(faults=lambda _: []), "", id="no fault"),
    ],
)
def test_a_part_without_a_figure_of_ours_has_failed_and_says_which(tmp_path: Path, one: Part, trouble: str) -> None:
    found, _ = measure(tmp_path, one)
    assert found.benches[0].trouble == trouble
    assert found.has_failed is bool(trouble)
    assert found.rows


@pytest.mark.parametrize(
    ("one", "seconds", "trouble"),
    [
        pytest.param(part(needs=("no-such-program",)), 60, "not installed: no-such-program", id="a missing program"),
        pytest.param(part(cost=Cost(100, 1)), 60, "no time for it: 1.0 minutes were left", id="no time"),
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
