"""The numbers of dnstap: queries that a collector got, and queries that none got.

The law: no name and no address is here. Pure.
"""

from __future__ import annotations

from collections.abc import Callable


class DnstapNumbers:
    """Counts since the start. `asked` gives the number of all queries: without a collector nobody listens."""

    def __init__(self, asked: Callable[[], int]) -> None:
        self.sent = 0
        """Queries whose messages went to a collector."""
        self._dropped = 0
        self._asked = asked
        self._away_since = asked()
        self._take_dropped: Callable[[], int] | None = None

    @property
    def connected(self) -> bool:
        """Whether a collector takes messages."""
        return self._take_dropped is not None

    @property
    def dropped(self) -> int:
        """Queries that no collector got."""
        if self._take_dropped is None:
            return self._dropped + max(0, self._asked() - self._away_since)
        self._dropped += self._take_dropped()
        return self._dropped

    def drop(self, queries: int) -> None:
        """Count queries of a connected collector that did not reach it."""
        self._dropped += queries

    def note_connected(self, take_dropped: Callable[[], int]) -> None:
        """From now on the listener counts: `take_dropped` gives what it dropped since the last call."""
        self._dropped, self._take_dropped = self.dropped, take_dropped

    def note_lost(self) -> None:
        """From now on every query is dropped."""
        self._dropped, self._take_dropped, self._away_since = self.dropped, None, self._asked()
