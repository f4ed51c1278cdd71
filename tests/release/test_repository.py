"""The sources of a release; test_cli.py has what is refused, and test_plays.py what is built from them."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

from release.repository import read_repository, unpack_sources
from tests.release.clones import make_clone


def test_the_sources_of_a_release_know_their_commit(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "repository")
    commit = read_repository(clone).commit
    unpack_sources(clone, commit, tmp_path / "sources")
    build = runpy.run_path(str(tmp_path / "sources" / "sidecar" / "values" / "build.py"))
    assert build["own_build"]().revision == commit


def test_the_settings_of_the_user_change_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = make_clone(tmp_path / "repository")
    before = read_repository(clone)
    unpack_sources(clone, before.commit, tmp_path / "sources")
    (tmp_path / "attributes").write_text("docs export-ignore\n")
    for name, value in {
        "core.autocrlf": "true",
        "core.attributesFile": str(tmp_path / "attributes"),
        "log.showSignature": "true",
    }.items():
        subprocess.run(["git", "config", "--file", str(tmp_path / "config"), name, value], check=True)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    assert read_repository(clone) == before
    unpack_sources(clone, before.commit, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "sources")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
