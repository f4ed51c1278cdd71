"""A copy of a tree in which mutants are judged.

The law: the tree itself is only read. The copy has at most one mutant at a time. The tests have no peers and nothing of
the caller's environment; where user namespaces are allowed, they have no root, and see no processes but their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

_LEFT_BEHIND: Final = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
_NAMESPACE: Final = (
    *("unshare", "--user", "--map-user=1000", "--map-group=1000"),
    *("--pid", "--fork", "--kill-child", "--mount-proc"),
)
_OPTIONS: Final = (
    *("--quiet", "-m", "not peer", "-p", "no:xdist", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
SECONDS: Final = 60
"""More than four times what any four files of tests need."""


@dataclass(frozen=True)
class Run:
    """One run of pytest; judge_process.py explains the fields."""

    ended: str
    failed: tuple[str, ...]
    running: str
    seconds: float

    @property
    def killer(self) -> str:
        """The test that noticed the mutant; empty if pytest ended before the first."""
        return self.failed[0] if self.failed else self.running

    def passed(self, tests: Sequence[str]) -> bool:
        """Whether these files were imported, or these tests passed; other tests of the files may have failed."""
        return self.ended == "passed" or (bool(self.failed) and not set(tests).intersection(self.failed))


class Court:
    """Judges one mutant after the other. A context manager; only one thread may use it."""

    def __init__(self, tree: Path, *, prefix: Sequence[str] = (), seconds: int = SECONDS) -> None:
        """`prefix` are the words before a command, see `namespace`; `seconds` is the processor time of a run."""
        self._limit = seconds
        self._folder = TemporaryDirectory(prefix="mutants-")
        self._copy = Path(self._folder.name, "tree")
        self._changes = 0
        shutil.copytree(tree, self._copy, ignore=_LEFT_BEHIND)
        home = Path(self._folder.name, "home")
        home.mkdir()
        python = Path(sys.executable)
        environment = {
            "PATH": f"{python.parent}:{os.defpath}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(self._copy),
            "SWITCHBACK_PEERS": "/nonexistent",
        }
        self._process = subprocess.Popen(
            [*prefix, python, "-P", Path(__file__).with_name("judge_process.py"), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._copy,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def run(self, tests: Sequence[str]) -> Run:
        """All these tests, with the unchanged sources."""
        return self._ask(tests)

    def judge(self, file: str, source: bytes, tests: Sequence[str], *, without: Sequence[str]) -> Run:
        """These tests, but for those of `without`, until the first fails, with another source in a file."""
        deselected = [f"--deselect={test}" for test in without]
        with self._changed(file, source):
            return self._ask(["--exitfirst", *deselected, *tests])

    @contextmanager
    def _changed(self, file: str, source: bytes) -> Iterator[None]:
        path = self._copy / file
        original, times = path.read_bytes(), path.stat()
        path.write_bytes(source)
        # Bytecode is of a file's size and second: two mutants, or one and the original, must not share them.
        self._changes += 1
        os.utime(path, (times.st_atime, times.st_mtime + self._changes))
        try:
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _ask(self, arguments: Sequence[str]) -> Run:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": [*_OPTIONS, *arguments], "seconds": self._limit}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return Run(answer["ended"], tuple(answer["failed"]), answer["running"], answer["seconds"])


def namespace() -> tuple[str, ...]:
    """The prefix of a command that runs it without root and in namespaces of its own; empty where that is forbidden."""
    if shutil.which("unshare") is None:
        return ()
    allowed = subprocess.run([*_NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    return _NAMESPACE if allowed else ()
