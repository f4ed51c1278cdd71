"""Starts a program as systemd does: with sockets at descriptors 3 and up, and their environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).parents[2]

# This runs in the process that becomes the program, because LISTEN_PID must be its ID. It closes the originals, so that
# only the passed descriptors are open.
_LAUNCH: Final = """
import fcntl, os, sys
handed = [int(one) for one in sys.argv[1].split(",") if one]
copies = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 64) for one in handed]
os.closerange(3, 64)
for position, copy in enumerate(copies):
    os.dup2(copy, 3 + position)
own = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(handed))}
os.execve(sys.executable, [sys.executable, *sys.argv[2:]], {**own, **os.environ})
"""


class HasDescriptor(Protocol):
    """A socket or a file."""

    def fileno(self) -> int:
        """Its descriptor."""


@contextmanager
def started_with(
    handed: Sequence[HasDescriptor], *arguments: str, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run Python with these arguments and kill it at the end; `variables` replace those of systemd."""
    descriptors = [one.fileno() for one in handed]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LISTEN_")}
    command = [sys.executable, "-c", _LAUNCH, ",".join(map(str, descriptors)), *arguments]
    environment = {**plain, "PYTHONPATH": str(ROOT), **(variables or {})}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, pass_fds=descriptors, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()
