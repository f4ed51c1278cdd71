"""Processes that a benchmark starts, and their guaranteed end.

The law: each process leads its own session, so that Ctrl-C reaches only the benchmark and the end of the session
includes its children; we signal only these processes.
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
"""The checkout: every process runs the code of this tree, whatever its working directory."""

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
    """Run a process for the duration of a block, with stdout and stderr in a log."""
    if open_files is not None:
        # Set before the program's first instruction; a limit set from outside would race with its start.
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
    """Terminate our process and its children; after a grace period, kill them."""
    _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _END_SECONDS
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    _signal(process, signal.SIGKILL)
    process.wait()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait without reaping: until then its ID stays reserved, and its group can be signalled once more."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def limited(open_files: tuple[int, int] | None) -> list[str]:
    """The beginning of a command line that runs the rest of it with a soft and a hard limit of descriptors."""
    if open_files is None:
        return []
    soft, hard = open_files
    return ["sh", "-c", f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$0" "$@"']
