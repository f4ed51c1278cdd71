"""The process of a part: its lines are reported while it runs, and it ends within a time.

The law: nothing waits for a program that a part left behind. Such a program may keep the pipe of the part's lines open
for ever, so the end of the pipe is never what ends the part. Tests: test_run.py.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

from tests.kit.launched import ROOT

_ENDING_SECONDS: Final = 30.0
"""In which a part ends its servers."""
_LOOK_SECONDS: Final = 0.5
"""Without a line, until the next look whether it still runs."""
_CHUNK: Final = 65_536


def run_command(command: Sequence[str], log: Path, *, limit: float, report: Callable[[str], None]) -> str:
    """Run a command to its end, at most `limit` seconds and what its servers take to end; why it failed, or empty."""
    last = ""
    until = time.monotonic() + limit
    with ExitStack() as stack:
        output = stack.enter_context(log.open("wb", buffering=0))
        streams: dict[str, Any] = {"stdout": output, "stderr": subprocess.PIPE}
        process = stack.enter_context(subprocess.Popen(command, cwd=ROOT, **streams))
        stack.callback(_end, process)
        for line in _lines(process, output, until=until):
            last = line
            report(line)
        try:
            status = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _end(process)
            # Its last words, for the log.
            list(_lines(process, output, until=time.monotonic() + _LOOK_SECONDS))
            return f"it took longer than {limit / 60:.0f} minutes"
    return f"exit status {status}: {last}" if status else ""


def _lines(process: subprocess.Popen[bytes], log: BinaryIO, *, until: float) -> Iterator[str]:
    """What it writes to stderr, line by line, and into the log; empty lines only there."""
    assert process.stderr is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            # Looked up first: what it wrote before its end is in the pipe by now.
            has_ended = process.poll() is not None
            if not selector.select(0 if has_ended else min(left, _LOOK_SECONDS)):
                if has_ended:
                    break
                continue
            chunk = os.read(process.stderr.fileno(), _CHUNK)
            if not chunk:
                break
            log.write(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from filter(None, map(_text, whole))
    yield from filter(None, [_text(rest)])


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    """In order, so that it ends its servers; by force, if it does not."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
