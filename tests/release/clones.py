"""Repositories with the current sources, committed and tagged, to build releases from.

The law: the project's own repository is only read; each clone has one commit at a fixed time, so two are the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[2]
VERSION: Final = "0.1.0"
IMAGE: Final = "registry.example.org/switchback"
EPOCH: Final = 1_700_000_000
"""The time of each commit."""
_TIME: Final = f"{EPOCH} +0000"
_IDENTITY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "test"), ("EMAIL", "test@example.org"), ("DATE", _TIME))
}
_UNRELEASED: Final = re.compile(r"^## Unreleased\n.*?(?=^## )", re.MULTILINE | re.DOTALL)


def make_clone(folder: Path, *, tag: str | None = f"v{VERSION}", more: Mapping[str, str] | None = None) -> Path:
    """A repository in `folder` with nothing unreleased in its changelog, and `more` files by path."""
    listed = git(PROJECT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        source, target = PROJECT / name, folder / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target, follow_symlinks=False)
            if not target.is_symlink():
                target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(_UNRELEASED.sub("## Unreleased\n\n", changelog.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in (more or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    if tag is not None:
        git(folder, "tag", tag)
    return folder


def commit(folder: Path) -> None:
    """Commit everything."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-gpg-sign", "--message=test")


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    env = {**os.environ, **_IDENTITY}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


DOWNLOADS = "https://forge.example.org/switchback/releases/download"


def release(
    clone: Path, dist: Path, *words: str, env: Mapping[str, str] | None = None, inside: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run `python -m release` for a clone with the code under test."""
    flags = ["--source", str(clone), "--dist", str(dist), *words]
    command = [*inside, sys.executable, "-m", "release", *flags]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "RELEASE_DOWNLOADS": DOWNLOADS, **(env or {})}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT, env=variables)
