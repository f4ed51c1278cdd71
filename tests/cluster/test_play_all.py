"""What is noted of a combination that was played."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cluster import play_all
from tests.cluster.play_all import Note, Played, keep, note

LOG = b"\nBuild the images\n\n1. A cluster is there.\n    (3 s)\n\n2. Before: no page.\n    FAILED after 4 s: saw 1\n"


@pytest.mark.parametrize(
    ("told", "status", "result", "steps"),
    [
        (LOG, 0, "passed", 2),
        (LOG, 1, "failed at: Before: no page.", 2),
        (
            b"missing: envoy; `make cluster-peers` brings what is needed\n",
            3,
            "missing: envoy; `make cluster-peers` brings what is needed",
            0,
        ),
        (b"Traceback\n", 1, "failed at: its start", 0),
        (b"1. \xff broken\n", 1, "failed at: \ufffd broken", 1),
    ],
    ids=["passed", "failed", "could not", "fell before the first step", "octets that are no text"],
)
def test_the_end_is_told_by_the_status_and_the_last_step(told: bytes, status: int, result: str, steps: int) -> None:
    found = note(told, status=status, seconds=6.6)
    assert (found.result, found.steps, found.seconds) == (result, steps, 7)


def test_versions_are_those_of_programs_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("contour-v1.9.0", "contour-v1.33.8", "cert-manager-v1.21.2-18483da30c7f", "speaker-v35ae67bcf33f"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(play_all, "peers_cache", lambda: tmp_path)
    assert play_all.versions()["cert-manager"] == "1.21.2"
    assert "speaker" not in play_all.versions()


def test_a_note_leaves_those_of_other_combinations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "played.json"
    monkeypatch.setattr(play_all, "PLAYED", file)
    keep("one", Note("2026-01-01", "passed", 1, 1))
    keep("two", Note("2026-01-02", "failed at: x", 2, 2))
    keep("one", Note("2026-01-03", "failed at: y", 3, 3))
    kept = msgspec.json.decode(file.read_bytes(), type=Played).combinations
    assert {name: one.date for name, one in kept.items()} == {"one": "2026-01-03", "two": "2026-01-02"}
