"""The command of the whole run; tests/bench/whole has the tests of what it calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from docs.speed.run import Bench, parse_run
from docs.speed.tables import update_readme
from tests.bench import __main__ as command
from tests.bench.whole.parts import PARTS
from tests.bench.whole.run import Found
from tests.docs.speed.runs import make_row

README = "# Switchback\n\n| work | ours / theirs |\n| --- | --- |\n| old | 1.00 |\n\n## Layers\n"
BENCH = Bench("dns", "DNS", "Names", 1.0, 1)


@pytest.fixture(autouse=True)
def no_peers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their versions stand in the figures."""
    monkeypatch.setenv("SWITCHBACK_PEERS", str(tmp_path / "none"))


def run(monkeypatch: pytest.MonkeyPatch, found: Found, *arguments: str) -> Any:
    asked: list[str] = []
    how: dict[str, Any] = {}

    def run_parts(parts: Any, **given: Any) -> Found:
        asked.extend(part.name for part in parts)
        how.update(given)
        return found

    monkeypatch.setattr(command, "run_parts", run_parts)
    result = CliRunner().invoke(command.main, list(arguments))
    result.asked, result.how = asked, how  # type: ignore[attr-defined]
    return result


@pytest.fixture
def guide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with what --record writes, instead of the project's own."""
    monkeypatch.setattr(command, "RECORDED", tmp_path / "speed.json")
    monkeypatch.setattr(command, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text(README)
    return tmp_path


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
        pytest.param(("--record", "--only", "dns"), id="a record of one part, which would lose the others"),
        pytest.param(("--record", "--quick"), id="a record that says nothing about speed"),
    ],
)
def test_bad_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command.main, list(arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert arguments[0] in result.stderr


def test_a_record_has_the_figures_of_the_guide_and_the_table_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, guide: Path
) -> None:
    result = run(monkeypatch, measured(), "--folder", str(guide / "page"), "--record", "--beside", "nothing else")
    assert result.exit_code == 0
    assert result.how["whole"] is True
    recorded = parse_run((guide / "speed.json").read_bytes())
    assert recorded.machine.beside == "nothing else"
    assert update_readme(README, recorded) == (guide / "README.md").read_text()
    assert "1.20" in (guide / "README.md").read_text()


def test_of_a_run_with_a_failed_part_the_others_are_recorded(monkeypatch: pytest.MonkeyPatch, guide: Path) -> None:
    failed = Bench("relay", "Relay", "Connections", trouble="it ended", failed=True)
    found = Found([BENCH, failed], [make_row()])
    result = run(monkeypatch, found, "--folder", str(guide / "page"), "--record")
    assert result.exit_code == 1
    assert "Failed: it ended" in (guide / "page" / "index.html").read_text()
    recorded = parse_run((guide / "speed.json").read_bytes())
    assert [row.bench for row in recorded.rows] == ["dns"]
    assert [bench.trouble for bench in recorded.benches] == ["", "it ended"]


def test_without_record_the_guide_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, guide: Path) -> None:
    result = run(monkeypatch, measured(), "--folder", str(guide / "page"))
    assert result.how["whole"] is False
    assert not (guide / "speed.json").exists()
    assert (guide / "README.md").read_text() == README


def test_nothing_measured_records_nothing(monkeypatch: pytest.MonkeyPatch, guide: Path) -> None:
    run(monkeypatch, Found([BENCH], []), "--folder", str(guide / "page"), "--record")
    assert not (guide / "speed.json").exists()


def test_the_commit_is_the_one_that_was_there_when_the_run_began(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commits = ["before"]

    def run_parts(_: Any, **__: Any) -> Found:
        commits[0] = "after"
        return measured()

    monkeypatch.setattr(command, "run_parts", run_parts)
    monkeypatch.setattr(command, "read_commit", lambda: commits[0])
    CliRunner().invoke(command.main, ["--folder", str(tmp_path)])
    assert parse_run((tmp_path / "run.json").read_bytes()).commit == "before"
