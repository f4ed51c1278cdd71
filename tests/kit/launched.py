"""Processes that a benchmark starts, and their certain end.

The law: each leads a session of its own, so that Ctrl-C reaches us alone and its end takes along what it forked; we
signal no process but those.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.kit.cpus import pinned

ROOT: Final = Path(__file__).resolve().parents[2]
"""The checkout: what is measured is the tree that this file is in, wherever a process runs."""

_END_SECONDS = 2.0


@contextmanager
def launched(
    command: Sequence[str],
    *,
    log: Path,
    cpus: Collection[int],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    open_files: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process for the time of a block, stdout and stderr into a log."""
    if open_files is not None:
        # Set before the program's first instruction; a limit set from here would race with its start.
        command = ["sh", "-c", f'ulimit -n {open_files} && exec "$0" "$@"', *command]
    with log.open("wb") as output, pinned(cpus):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end_session(process)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Ask a process of ours and its children to end; after a moment, end them."""
    _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _END_SECONDS
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    _signal(process, signal.SIGKILL)
    process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without reaping it: until then its number is nobody else's, and its group can be signalled once more."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
