"""A mount namespace (mount_namespaces(7)) for a test, where files are mounted as in a container.

The law: mounts inside are invisible outside, and the namespace ends with its block. Linux and root only.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conftest import refuse
from tests.kit.processes import end_process, wait_for

_OURS: Final = Path("/proc/self/ns/mnt")
_SECONDS: Final = 60


@dataclass(frozen=True)
class MountNamespace:
    """Runs programs inside the namespace."""

    holder: subprocess.Popen[bytes]

    def command(self, *arguments: str) -> list[str]:
        """The command prefix that runs a program inside."""
        return ["nsenter", f"--mount={self._file}", *arguments]

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program inside until it ends; any exit status is accepted."""
        return subprocess.run(
            self.command(*arguments), env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )

    def bind(self, source: Path, target: Path, *options: str) -> None:
        """Mount a file, or a folder, over another."""
        done = self.run("mount", "--bind", *_options(options), str(source), str(target))
        assert done.returncode == 0, done.stderr

    @property
    def _file(self) -> str:
        return f"/proc/{self.holder.pid}/ns/mnt"


def _options(options: Sequence[str]) -> list[str]:
    return ["-o", ",".join(options)] if options else []


@contextmanager
def mount_namespace() -> Iterator[MountNamespace]:
    """A mount namespace for the duration of the block; skips the test without the needed privileges."""
    if os.geteuid() != 0:
        refuse("this needs root, to mount a file over another one")
    with ExitStack() as stack:
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "infinity"])
        stack.callback(end_process, holder)
        wait_for(
            lambda: Path(f"/proc/{holder.pid}/ns/mnt").readlink() != _OURS.readlink(),
            process=holder,
            log=Path(os.devnull),
        )
        yield MountNamespace(holder)
