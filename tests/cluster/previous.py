"""The version before this one, from which upgrades are played: its sources, and its image.

The law: it is the newest release among this commit's ancestors; before the first release, the commit that introduced
the chart. It is taken from this repository's history, and nothing of it is changed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.deploy.image import PROJECT, build_image

FIRST: Final = "d1aeff524db81c3eebdf0d2bc3984c3d808d8ee4"
"""The commit that introduced the chart."""
IMAGE: Final = "localhost/switchback:previous"


class NoHistory(Exception):
    """The repository does not have that commit; the message says how it can be had."""


def previous_version() -> str:
    """A tag, or a commit."""
    done = _git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
    return done.stdout.strip() if done.returncode == 0 else FIRST


def copy_previous(folder: Path) -> Path:
    """Its sources in a new folder below `folder`. Returns the folder. Raises NoHistory."""
    copied = folder / "previous"
    copied.mkdir(parents=True)
    archive = folder / "previous.tar"
    done = _git("archive", "--format=tar", f"--output={archive}", previous_version())
    if done.returncode:
        raise NoHistory(f"git archive {previous_version()}: {done.stderr.strip()}; run git fetch --unshallow --tags")
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={copied}"], check=True)
    archive.unlink()
    return copied


def save_previous(folder: Path) -> dict[str, Path]:
    """Its image as an archive, by name. Raises NoHistory."""
    room = folder / "of-previous"
    room.mkdir()
    image = build_image(IMAGE, folder=room, context=copy_previous(room))
    image.save(folder / "previous.tar", name=IMAGE)
    return {IMAGE: folder / "previous.tar"}


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(PROJECT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)
