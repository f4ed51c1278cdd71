"""Reads the state of a git repository, and unpacks the sources of its commit.

The law: what is built comes from the commit alone, never from the work tree, but for the name of the image; nothing in
the repository changes. The user's settings of git change nothing of it.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

from release.commands import failed, run
from release.judge import Repository
from sidecar.values.errors import StartError

_OURS: Final = ("core.autocrlf=false", "core.eol=lf", "core.attributesFile=/dev/null", "log.showSignature=false")
"""Settings by which a user's own would change the sources, or what git prints."""
_BUILT_FOR: Final = 'BUILT_FOR: Final = ""'


def read_repository(folder: Path) -> Repository:
    """The state of the repository. Raises StartError."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        version = project["project"]["version"]
    except (OSError, ValueError, KeyError) as error:
        raise StartError(f"{folder} is not a source tree of Switchback: {error!r}") from error
    commit, time = _git(folder, "log", "-1", "--format=%H %ct").split()
    # -z: a path is not quoted; a renamed file has its old path as another entry.
    changed = [one[3:] for one in _git(folder, "status", "--porcelain", "-z").split("\0") if one]
    return Repository(
        version=version,
        commit=commit,
        time=int(time),
        tags=_git(folder, "tag", "--points-at", "HEAD").split(),
        changed=changed,
        changelog=_git(folder, "show", "HEAD:CHANGELOG.md"),
        default_image=project.get("tool", {}).get("switchback", {}).get("image"),
        default_downloads=project.get("tool", {}).get("switchback", {}).get("downloads"),
    )


def unpack_sources(repository: Path, commit: str, folder: Path) -> None:
    """Put the commit's files into a folder, each with the commit's time."""
    archive = folder.with_suffix(".tar")
    # The umask of the archive is ours, not the machine's or the user's.
    _git(repository, "-c", "tar.umask=0022", "archive", "--format=tar", f"--output={archive}", commit)
    folder.mkdir()
    run("tar", "--extract", "--same-permissions", f"--file={archive}", f"--directory={folder}")
    archive.unlink()


def write_image_name(folder: Path, *, image: str, version: str) -> None:
    """Write the image of the release into unpacked sources, for `dnsproxy doctor`. Raises StartError."""
    file = folder / "dnsproxy" / "doctor" / "judge" / "installation.py"
    text, stat = file.read_text(encoding="utf-8"), file.stat()
    if text.count(_BUILT_FOR) != 1:
        raise failed(f"{file.relative_to(folder)} has no line for the image: {_BUILT_FOR}")
    file.write_text(text.replace(_BUILT_FOR, f'{_BUILT_FOR[:-2]}"{image}:{version}"'), encoding="utf-8")
    os.utime(file, (stat.st_atime, stat.st_mtime))


def _git(folder: Path, *words: str) -> str:
    try:
        return run("git", "-C", str(folder), *(word for one in _OURS for word in ("-c", one)), *words)
    except FileNotFoundError as error:
        raise failed("git is missing") from error
