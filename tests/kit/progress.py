"""The progress of a benchmark on stderr: one status line on a terminal, otherwise one line per step.

The law: stdout has only figures.
"""

from __future__ import annotations

import sys
from typing import TextIO

_REWRITE = "\r\x1b[2K"


class Progress:
    """Counts the steps of a known total."""

    def __init__(self, steps: int, *, stream: TextIO | None = None) -> None:
        self._steps = steps
        self._done = 0
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()

    def step(self, text: str) -> None:
        """The next step begins."""
        self._done += 1
        line = f"[{self._done}/{self._steps}] {text}"
        self._write(f"{_REWRITE}{line}" if self._terminal else f"{line}\n")

    def note(self, text: str) -> None:
        """Print a line that stays visible."""
        self._write(f"{_REWRITE}{text}\n" if self._terminal else f"{text}\n")

    def finish(self) -> None:
        """Clear the status line."""
        if self._terminal:
            self._write(_REWRITE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
