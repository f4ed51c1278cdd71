"""A progress line: one line on a terminal that changes while a command waits.

The law: it goes to stderr, only on a terminal, and the terminal's line is empty after `clear`. Text from outside is
escaped.
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
            click.echo(f"{_CLEAR}{one_line(text)[: width - 1]}", nl=False, err=True, color=True)
            self._shown = True

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            click.echo(_CLEAR, nl=False, err=True, color=True)
