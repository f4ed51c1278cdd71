"""What `--tap` allows: a closed list of words, each with its meaning.

The law: nothing of a query is kept unless one of these words, and a listener or the operator, asks for it. Pure.
"""

from __future__ import annotations

from enum import Enum


class TapMode(Enum):
    """Who may see queries on the admin port."""

    ON = "on"
    """Listeners of `GET /tap`; without one nothing is recorded."""
    OFF = "off"
    """Nobody."""
    RECENT = "recent"
    """Listeners; and who asked for a name in the last minute is kept for `explain`."""
