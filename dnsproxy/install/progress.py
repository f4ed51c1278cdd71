"""Progress: one line on a terminal that changes while something is waited for, or a line now and then elsewhere.

The law: it goes to stderr, and nothing of it is left on a terminal's line when the wait is over.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Final

import click

from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.corefile.stanza import format_address
from sidecar.text import one_line

_EVERY: Final = 15.0
"""Seconds between two lines where there is no terminal."""
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Told what was asked, it says how far it is."""

    def __init__(self, what: str, seconds: float, *, silent: bool = False) -> None:
        self._what = what
        self._seconds = seconds
        self._terminal = sys.stderr.isatty()
        self._silent = silent
        self._next = 0.0
        self._shown = False

    def __call__(self, passed: float, asked: Sequence[ProbeResult]) -> None:
        """Say it, if it is time."""
        if self._silent or (passed < self._next and not self._terminal):
            return
        self._next = passed + _EVERY
        said = "; ".join(f"{format_address(one.endpoint)} for {one.zone}: {one.said}" for one in asked)
        line = one_line(f"Waiting for {self._what}, {passed:.0f} of up to {self._seconds:.0f} s ({said})")
        if self._terminal:
            width = shutil.get_terminal_size().columns
            click.echo(f"{_CLEAR}{line[: width - 1]}", nl=False, err=True, color=True)
        else:
            click.echo(line, err=True)
        self._shown = True

    def end(self) -> None:
        """Leave the terminal's line empty."""
        if self._shown and self._terminal:
            click.echo(_CLEAR, nl=False, err=True, color=True)
