"""What the user of `dnsproxy tap` sees: queries on stdout, notes on stderr.

The law: stdout has one whole line for each query, written at once, and nothing else. Colours are for terminals, and no
text from outside controls one. While nothing comes, a terminal shows that the command waits.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

import click
import msgspec
import trio

from dnsproxy.tap.event import TapEvent, format_event
from dnsproxy.tap.seen import Outcome
from sidecar.cli.progress_line import ProgressLine
from sidecar.values.text import colour_choice, escaped_json, one_line

WAITING: Final = "waiting for queries ..."
QUIET_SECONDS: Final = 3.0
"""Without a query, until a terminal shows WAITING again."""
_COLOURS: Final = {
    Outcome.TABLE.value: "green",
    Outcome.ZONE.value: "cyan",
    Outcome.REFUSED.value: "yellow",
    Outcome.FAILED.value: "red",
    Outcome.DROPPED.value: "red",
}
"""By outcome; queries that an upstream answered have none."""


class Screen:
    """The two streams."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._progress = ProgressLine()
        self._shown: float | None = None
        choice = colour_choice(os.environ)
        self._coloured = sys.stdout.isatty() if choice is None else choice

    def show(self, event: TapEvent) -> None:
        """One line on stdout."""
        self._progress.clear()
        self._shown = trio.current_time()
        sys.stdout.write(f"{self._line(event)}\n")
        # Not at the end of a buffer: a reader of a pipe wants each query when it ends.
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """One line on stderr."""
        self._progress.clear()
        click.echo(f"Note: {one_line(text)}", err=True)

    def clear(self) -> None:
        """Leave no progress line."""
        self._progress.clear()

    async def keep_waiting_line(self) -> NoReturn:
        """Show that the command waits whenever nothing was shown for a while, until cancelled."""
        while True:
            if self._shown is None or trio.current_time() - self._shown >= QUIET_SECONDS:
                self._progress.show(WAITING)
            await trio.sleep(QUIET_SECONDS)

    def _line(self, event: TapEvent) -> str:
        if self._json:
            return escaped_json(msgspec.to_builtins(event))
        text = format_event(event)
        colour = _COLOURS.get(event.outcome)
        return click.style(text, fg=colour) if self._coloured and colour else text
