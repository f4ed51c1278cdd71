"""Processes that tests start: waiting until they are ready, and their guaranteed end."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

START_SECONDS = 90.0
"""Most processes are ready within three seconds; a busy machine needs longer."""


class StartFailed(AssertionError):
    """A peer did not start; the message has the end of its log."""


def take_hangups() -> None:
    """SIGHUP ends a child that starts with this `preexec_fn`, as in a terminal, also if the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def is_listening(port: int, *, address: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def wait_for(condition: Callable[[], bool], *, process: subprocess.Popen[bytes], log: Path) -> None:
    """Poll until a peer is ready; fail with its log if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise StartFailed(f"{process.args!r} is not ready; the end of its log:\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


def end_process(process: subprocess.Popen[bytes] | None) -> None:
    """SIGKILL one process of ours and reap it; its resources do not outlive the test."""
    if process is not None:
        process.kill()
        process.wait()
