"""The sources of a release; test_cli.py has what is refused, and test_plays.py what is built from them."""

from __future__ import annotations

import runpy
from pathlib import Path

from release.repository import read_repository, unpack_sources
from tests.release.clones import make_clone


def test_the_sources_of_a_release_know_their_commit(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "repository")
    commit = read_repository(clone).commit
    unpack_sources(clone, commit, tmp_path / "sources")
    build = runpy.run_path(str(tmp_path / "sources" / "sidecar" / "values" / "build.py"))
    assert build["own_build"]().revision == commit
