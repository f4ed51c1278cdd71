"""Calls buildah, which builds images without a daemon.

The law: the only module here that runs it; a fault of the machine that passes is tried again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NO_COPY: Final = "sealing memfd copy: Device or resource busy"
"""buildah runs each command by a copy of itself in memory, which it seals first. The kernel refuses while it uses a
page of the copy itself, for which it waits a sixth of a second at most: fcntl(2), F_SEAL_WRITE."""
_TRIES: Final = 3


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
            done = run_buildah([*self.command, *arguments])
        except FileNotFoundError as error:
            raise BuildFailed(f"{self.command[0]} is not installed: apt-get install buildah") from error
        if done.returncode != 0:
            raise BuildFailed(f"buildah {' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout


def run_buildah(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command line of buildah to its end, and again if it could not copy itself.

    The command of a container has not run then; a build begins anew. Raises FileNotFoundError if buildah is missing.
    """
    for _ in range(_TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 or _NO_COPY not in done.stderr:
            break
    return done
