"""Whether a transfer comes fast enough to be waited for.

The law: pure; times in seconds. A primary that sends a little now and then keeps a secondary from the next primary no
longer than one that sends nothing.
"""

from __future__ import annotations

from typing import Final

WINDOW: Final = 20.0
"""Seconds; a primary may be rendering 500,000 names before its first octet."""
LEAST: Final = 256 << 10
"""Octets in a window: 100,000 names are some 18 MB, which at this pace take 24 minutes; a slower link has no use."""


class Progress:
    """The progress of one transfer."""

    def __init__(self, now: float) -> None:
        self._ends = now + WINDOW
        self._octets = 0

    def note(self, octets: int, now: float) -> bool:
        """Whether it may go on, after these octets came."""
        self._octets += octets
        if now < self._ends:
            return True
        enough = self._octets >= LEAST
        self._ends, self._octets = now + WINDOW, 0
        return enough
