"""What runs now, and how long all still takes, on stderr: one line on a terminal, otherwise a line for each step."""

from __future__ import annotations

import shutil
import sys
from typing import Final, TextIO

_REWRITE: Final = "\r\x1b[2K"


class Status:
    """The line; stdout has only figures."""

    def __init__(self, *, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()

    def tell(self, text: str, left: float) -> None:
        """Something else runs; `left` in seconds."""
        line = f"{format_left(left)}  {text}"
        if self._terminal:
            self._write(f"{_REWRITE}{line[: shutil.get_terminal_size().columns - 1]}")
        else:
            self._write(f"{line}\n")

    def finish(self) -> None:
        """Clear the line."""
        if self._terminal:
            self._write(_REWRITE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def format_left(seconds: float) -> str:
    """Minutes, rounded up; `over time` if none are left."""
    return f"{-int(-seconds // 60)} min left" if seconds > 0 else "over time"
