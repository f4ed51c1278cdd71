"""The log of a server of ours, read while it grows.

The law: a line counts once it is complete; what is no event (a warning of Python's, say) is passed over.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

Event = dict[str, Any]

_END: Final = 1000
"""Octets that are shown of a log."""


class Log:
    """A file that only grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.events: list[Event] = []

    def read(self) -> bool:
        """Take in what was written since; whether it was anything."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            events, used = parse_log(file.read())
        self._read += used
        self.events += events
        return bool(used)

    def end(self) -> str:
        """What it says last, for people."""
        return self._path.read_text(errors="replace")[-_END:]


def parse_log(octets: bytes) -> tuple[list[Event], int]:
    """The events of the complete lines, and how many octets those are."""
    used = octets.rfind(b"\n") + 1
    events = (_parse_line(line) for line in octets[:used].splitlines())
    return [event for event in events if event is not None], used


def _parse_line(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def is_serving(event: Event) -> bool:
    """Whether it says that the sockets are open."""
    return event.get("event") == "serving"


def is_ready(event: Event) -> bool:
    """Whether it says that the table holds what every source has."""
    return event.get("event") == "table swapped" and event.get("waiting_for") == []
