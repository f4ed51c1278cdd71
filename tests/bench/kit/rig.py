"""The processes of one run: a folder for all, a folder and a log for each, all ended together.

The law: the rig owns what it starts; a server that a caller starts for itself ends with the caller's stack.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import ClassVar, Self

from tests.bench.kit.cpus import Cpus
from tests.kit.launched import launched


@dataclass(frozen=True, slots=True)
class Server:
    """A process that listens."""

    port: int
    process: Popen[bytes]
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def session(self) -> int:
        """The session that its clock is read by."""
        return self.process.pid


class BaseRig:
    """A context manager that owns a temporary folder and all processes."""

    NAME: ClassVar[str]

    def __init__(self, *, cpus: Cpus) -> None:
        self.cpus = cpus
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.NAME}-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def make_folder(self, label: str) -> Path:
        """A fresh folder for one process."""
        name = "".join(filter(str.isalnum, label))
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))

    def launch(
        self,
        command: Sequence[str],
        *,
        port: int,
        folder: Path,
        cpus: Collection[int],
        stack: ExitStack,
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        open_files: int | None = None,
    ) -> Server:
        """Write the files of a server and start it; it ends with `stack`."""
        for name, content in (files or {}).items():
            (folder / name).write_text(content)
        process = stack.enter_context(
            launched(
                command,
                log=folder / "log",
                cpus=cpus,
                folder=folder,
                environment=environment,
                open_files=open_files,
            )
        )
        return Server(port, process, folder)
