"""A progress line: one line on a terminal that changes while a command waits.

The law: it goes to stderr, only on a terminal, and the terminal's line is empty after `clear`. Text from outside is
escaped. A terminal that hangs up ends the line, never the work that it tells of.
"""

from __future__ import annotations

import shutil
import sys
from typing import Final

import click

from sidecar.values.text import one_line

_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """The line, which is empty at first."""

    def __init__(self) -> None:
        self.on_terminal = sys.stderr.isatty()
        self._shown = False

    def show(self, text: str) -> None:
        """Replace the line with the beginning of a text; does nothing without a terminal."""
        if self.on_terminal:
            width = shutil.get_terminal_size().columns
            self._shown = True
            self._write(f"{_CLEAR}{one_line(text)[: width - 1]}")

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        try:
            click.echo(text, nl=False, err=True, color=True)
        except OSError:
            # After a SIGHUP each write fails, and a command may have a status to restore before it ends.
            self.on_terminal = self._shown = False
