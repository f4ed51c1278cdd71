"""The release notes."""

from __future__ import annotations

import pytest

from release.notes import format_notes
from tests.release.plans import plan

DIGESTS = {"switchback": f"sha256:{'a' * 64}", "switchback-nftables": f"sha256:{'b' * 64}"}
CHANGELOG = "## Unreleased\n\n- Newer {braces}.\n\n## 0.1.0 (2026-11-26)\n\n- One {more}.\n\n## 0.0.1\n\n- Old.\n"


def test_they_have_the_install_lines_the_digests_and_the_changes_of_the_version() -> None:
    notes = format_notes(plan(), changelog=CHANGELOG, digests=DIGESTS)
    for words in (
        "# Switchback 0.1.0\n\n## Install",
        "helm install switchback oci://registry.example.org/charts/switchback --version 0.1.0\n",
        "kubectl apply -f switchback-0.1.0.yaml",
        "python3 switchback.pyz doctor app.example.org",
        f"`registry.example.org/switchback:0.1.0@{DIGESTS['switchback']}`",
        f"`registry.example.org/switchback-nftables:0.1.0@{DIGESTS['switchback-nftables']}`",
        "sha256sum -c SHA256SUMS",
        "## Changes\n\n- One {more}.\n",
    ):
        assert words in notes
    for other in ("Newer", "Old", "SNAPSHOT"):
        assert other not in notes


def test_a_snapshot_begins_with_what_it_is() -> None:
    notes = format_notes(plan(snapshot=True), changelog="## Unreleased\n- Newer.\n", digests=DIGESTS)
    assert notes.split("\n")[2].startswith("> **SNAPSHOT, NOT A RELEASE.**")
    assert "c" * 40 in notes
    assert "- Newer." in notes


def test_a_release_never_has_unreleased_changes() -> None:
    with pytest.raises(KeyError):
        format_notes(plan(), changelog="## Unreleased\n- Newer.\n", digests=DIGESTS)
