"""Progress of a wait: one line on a terminal that changes, or a line now and then elsewhere.

The law: it goes to stderr, and the terminal's line is empty after the wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.corefile.stanza import format_address
from sidecar.cli.progress_line import ProgressLine
from sidecar.values.text import one_line

_EVERY: Final = 15.0
"""Seconds between two lines without a terminal."""


class Progress:
    """Reports how far a wait is."""

    def __init__(self, what: str, seconds: float, *, silent: bool = False) -> None:
        self._what = what
        self._seconds = seconds
        self._line = ProgressLine()
        self._silent = silent
        self._next = 0.0

    def __call__(self, passed: float, asked: Sequence[ProbeResult]) -> None:
        """Report, if it is time."""
        if self._silent or (passed < self._next and not self._line.on_terminal):
            return
        self._next = passed + _EVERY
        said = "; ".join(f"{format_address(one.endpoint)} for {one.zone}: {one.said}" for one in asked)
        text = f"Waiting for {self._what}, {passed:.0f} of up to {self._seconds:.0f} s{f' ({said})' if said else ''}"
        if self._line.on_terminal:
            self._line.show(text)
        else:
            click.echo(one_line(text), err=True)

    def end(self) -> None:
        """Leave the terminal's line empty."""
        self._line.clear()
