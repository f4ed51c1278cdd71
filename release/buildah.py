"""Calls buildah, which builds images without a daemon.

The law: the only module here that runs it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass


class BuildFailed(Exception):
    """buildah failed or is missing; the message is the end of its output."""


@dataclass(frozen=True)
class Buildah:
    """How buildah is called on this machine."""

    command: Sequence[str] = ("buildah",)
    """The program, and options that stand before its command, such as `--root=FOLDER`."""
    options: Sequence[str] = ()
    """Options of each build, such as `--isolation=chroot`, or `--build-arg=PIP_INDEX_URL=...` for another index."""

    def run(self, *arguments: str) -> str:
        """The output of one command. Raises BuildFailed."""
        try:
            done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise BuildFailed(f"{self.command[0]} is not installed: apt-get install buildah") from error
        if done.returncode != 0:
            raise BuildFailed(f"buildah {' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout
