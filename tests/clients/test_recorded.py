"""Outcomes are compared with the guide, and written there on demand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.recorded import DIRECT, THROUGH_COREDNS, check

SEEN = {"unknown name": "not found"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clients.json"
    rows = {"versions": {"Go": "1.0"}, THROUGH_COREDNS: {"Go": {**SEEN, "queries": "10 / 2"}}, DIRECT: {}}
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture(autouse=True)
def no_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPDATE_GOLDENS", raising=False)


def test_another_version_with_the_same_outcomes_passes(file: Path) -> None:
    before = file.read_text()
    check("Go", "2.0", THROUGH_COREDNS, SEEN, file)
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("client", "way", "seen"),
    [
        ("Go", THROUGH_COREDNS, {"unknown name": "no such name"}),
        ("Go", THROUGH_COREDNS, {**SEEN, "removed name": "within the TTL"}),
        ("Go", DIRECT, SEEN),
        ("Rust", THROUGH_COREDNS, SEEN),
    ],
    ids=["another outcome", "a new case", "another way", "a new client"],
)
def test_what_the_guide_does_not_say_fails_and_is_written_on_demand(
    file: Path, monkeypatch: pytest.MonkeyPatch, client: str, way: str, seen: dict[str, str]
) -> None:
    with pytest.raises(AssertionError, match="something else"):
        check(client, "2.0", way, seen, file)
    monkeypatch.setenv("UPDATE_GOLDENS", "1")
    check(client, "2.0", way, seen, file)
    rows = json.loads(file.read_text())
    assert rows["versions"][client] == "2.0"
    assert rows[way][client].items() >= seen.items()
    assert rows[THROUGH_COREDNS]["Go"]["queries"] == "10 / 2"
    monkeypatch.delenv("UPDATE_GOLDENS")
    check(client, "3.0", way, seen, file)
