"""The command of the whole run; tests/bench/whole has the tests of what it calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from docs.speed.run import Bench, parse_run
from tests.bench import __main__ as command
from tests.bench.whole.parts import PARTS
from tests.bench.whole.run import Found
from tests.docs.speed.runs import make_row

BENCH = Bench("dns", "DNS", "Names", 1.0, 1)


def run(monkeypatch: pytest.MonkeyPatch, found: Found, *arguments: str) -> Any:
    asked: list[str] = []

    def run_parts(parts: Any, **_: Any) -> Found:
        asked.extend(part.name for part in parts)
        return found

    monkeypatch.setattr(command, "run_parts", run_parts)
    result = CliRunner().invoke(command.main, list(arguments))
    result.asked = asked  # type: ignore[attr-defined]
    return result


def measured(**changes: Any) -> Found:
    return Found([Bench(**{**{name: getattr(BENCH, name) for name in Bench.__slots__}, **changes})], [make_row()])


def test_help_has_every_part_and_examples() -> None:
    shown = CliRunner().invoke(command.main, ["--help"]).output
    assert all(f"  {part.name} " in shown for part in PARTS)
    assert "Examples:" in shown


def test_a_run_writes_figures_and_page_and_prints_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run(monkeypatch, measured(), "--folder", str(tmp_path / "new"), "--beside", "a build")
    assert result.exit_code == 0
    assert "Answers a second (more is better)" in result.stdout
    written = parse_run((tmp_path / "new" / "run.json").read_bytes())
    assert written.machine.beside == "a build"
    assert "a build" in (tmp_path / "new" / "index.html").read_text()
    assert result.asked == [part.name for part in PARTS]


def test_json_is_all_of_stdout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run(monkeypatch, measured(), "--folder", str(tmp_path), "--output", "json", "--only", "dns")
    assert json.loads(result.stdout)["rows"][0]["id"] == "dns-table-answers"
    assert result.asked == ["dns"]


@pytest.mark.parametrize(
    ("found", "status"),
    [
        pytest.param(measured(trouble="takes root"), 0, id="something cannot be measured here"),
        pytest.param(measured(trouble="it ended", failed=True), 1, id="a part failed"),
        pytest.param(Found([BENCH], []), 3, id="nothing was measured"),
    ],
)
def test_the_exit_status_says_whether_a_part_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Found, status: int
) -> None:
    result = run(monkeypatch, found, "--folder", str(tmp_path))
    assert result.exit_code == status
    assert (tmp_path / "index.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--minutes", "0"), id="no time"),
        pytest.param(("--only", "nothing"), id="an unknown part"),
        pytest.param(("--output", "html"), id="an unknown form"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command.main, list(arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr
