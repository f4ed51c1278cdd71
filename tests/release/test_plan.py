"""What a run would build, for a reader and as JSON."""

from __future__ import annotations

import json

from release.artefacts import CHECKSUMS, Kind
from release.plan import format_plan, plan_document
from tests.release.plans import plan


def test_the_text_names_each_file_and_each_command() -> None:
    whole = plan()
    text = format_plan(whole, built=False)
    assert "Would be built in dist:" in text
    assert "Built in dist:" in format_plan(whole, built=True)
    for name in (*(one.name for one in whole.files), CHECKSUMS, *(one.line for one in whole.push)):
        assert name in text
    assert "SNAPSHOT" not in text


def test_a_snapshot_says_so() -> None:
    assert "SNAPSHOT: not a release" in format_plan(plan(snapshot=True), built=True)
    assert plan_document(plan(snapshot=True), {})["snapshot"] is True


def test_a_part_has_nothing_of_the_rest() -> None:
    text = format_plan(plan(kinds=[Kind.ZIPAPP]), built=True)
    assert "switchback.pyz" in text
    assert "To push" not in text
    assert ".whl" not in text


def test_the_document_has_checksums_after_a_run_alone() -> None:
    before, after = plan_document(plan(), {}), plan_document(plan(), {"switchback.pyz": "f" * 64})
    assert before["built"] is False
    assert {one["sha256"] for one in before["files"]} == {None}
    assert after["built"] is True
    assert {one["name"]: one["sha256"] for one in after["files"]}["switchback.pyz"] == "f" * 64
    assert json.loads(json.dumps(after)) == after
