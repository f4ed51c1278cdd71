"""Viewer: takes what servers say, shows it, counts it, and ends the command when there is enough.

The law: after the last query that was asked for nothing more is shown.
"""

from __future__ import annotations

from collections.abc import Callable

from dnsproxy.tap.event import Dropped, TapEvent
from dnsproxy.tap_command.screen import Screen
from sidecar.values.tally import Tally


class Viewer:
    """One screen and its tally; `end` is called when there is enough."""

    def __init__(self, screen: Screen, tally: Tally, end: Callable[[], None]) -> None:
        self._screen = screen
        self._tally = tally
        self._end = end

    def show(self, event: TapEvent) -> None:
        """Show a query."""
        if self._tally.is_complete:
            return
        self._screen.show(event)
        self._tally.add()
        if self._tally.is_complete:
            self._end()

    def note(self, text: str) -> None:
        """Show a note."""
        self._screen.note(text)

    def note_dropped(self, one: Dropped, *, pod: str = "") -> None:
        """Note that queries were not shown."""
        what = "1 query is" if one.dropped == 1 else f"{one.dropped} queries are"
        self.note(f"{what} missing here{pod and f', of pod {pod}'}: there were more than can be shown")
