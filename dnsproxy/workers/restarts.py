"""When a worker is started again, and when one is taken for hung.

The law: a worker that has worked is replaced at once, and one that fails at its start with growing pauses, because each
start costs the others processor time. Pure.
"""

from __future__ import annotations

from typing import Final

SETTLED: Final = 10.0
"""Seconds after which a worker's end has nothing to do with its start."""
_FIRST: Final = 0.1
_LONGEST: Final = 5.0

MISSED: Final = 6
"""Signs of life in a row that a worker may miss: 3 s. A resolv.conf client waits 5 s by default (`timeout`), so a query
that waits in the socket of a hung worker is still answered by the next one. A slow garbage collection, or a container
that is throttled for some periods of 100 ms, takes less."""


class Pauses:
    """The pauses before the starts of one worker, in seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def after(self, lived: float) -> float:
        """The pause after a worker that lived this long."""
        if lived >= SETTLED:
            self._next = 0.0
        pause = self._next
        self._next = min(_LONGEST, max(_FIRST, 2 * pause))
        return pause
