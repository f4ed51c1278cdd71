"""Writes lines to stderr so that its reader can never stop the program: a full pipe, a closed pipe, no stderr at all.

The law: a write never waits. A line that does not fit is lost and counted; the count is written when there is room.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TextIO

# A pipe that poll(2) calls writable takes this many octets without blocking (PIPE_BUF, pipe(7)).
_SLICE = select.PIPE_BUF


class Stderr(io.TextIOBase):
    """A text stream to a descriptor, or to a stream without one (as tests use for capturing)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._descriptor = _descriptor_of(self._stream)
        self._lost = 0

    @property
    def lost(self) -> int:
        """Lines that were lost and not reported yet."""
        return self._lost

    def isatty(self) -> bool:
        """Whether this is a terminal, so that a person may be reading."""
        return self._stream is not None and not self._stream.closed and self._stream.isatty()

    def write(self, text: str) -> int:
        """Write whole lines, or lose them. Never raises and never waits."""
        try:
            if self._lost and self._put(f"... {self._lost} log lines were lost here\n"):
                self._lost = 0
            if not self._put(text):
                self._lost += 1
        except (OSError, ValueError):
            # Closed by the reader, or by the interpreter at its end: a log without a reader must not stop the program.
            self._lost += 1
        return len(text)

    def _put(self, text: str) -> bool:
        if self._stream is None:
            return False
        if self._descriptor is None:
            self._stream.write(text)
            return True
        octets = text.encode(errors="backslashreplace")
        return all(self._put_slice(octets[at : at + _SLICE]) for at in range(0, len(octets), _SLICE))

    def _put_slice(self, octets: bytes) -> bool:
        if self._descriptor is None or not _is_writable(self._descriptor):
            return False
        # sys.stderr would keep what it could not write, and block on it at exit.
        return os.write(self._descriptor, octets) == len(octets)


def _is_writable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


def _descriptor_of(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):
        return None
