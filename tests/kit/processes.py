"""Processes that tests start: waiting until they are ready, and their certain end."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

START_SECONDS = 60.0
"""Most are ready in three; a busy machine may take its time."""


class StartFailed(AssertionError):
    """A peer did not come up; the message holds the end of its log."""


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool], *, process: subprocess.Popen[bytes], log: Path) -> None:
    """Poll until a peer is ready; say what it wrote if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise StartFailed(f"{process.args!r} is not ready; its log ends:\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


def end_process(process: subprocess.Popen[bytes] | None) -> None:
    """SIGKILL one process of ours and reap it; nothing it holds outlives the test."""
    if process is not None:
        process.kill()
        process.wait()
