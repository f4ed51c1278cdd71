"""The log of the table's changes: a line a second at most, however often the table is swapped.

The law: a change after a quiet second is logged at once; those of the second that follows are summed up in one line.
Ten names at most, however many there are; `/changes` and the page have the last 500.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog
import trio

from dnsproxy.hostnames.table_changes import MOST_NAMES, SwapChanges, TableChange, What

PACE: Final = 1.0
"""Seconds between two lines. A tenant with the right to create Ingresses can cause a hundred swaps a second."""

log = structlog.get_logger("dnsproxy.table")


class ChangeLog:
    """Sums up what the swaps change until it is logged."""

    def __init__(self) -> None:
        self._clear()

    def note(self, swap: SwapChanges) -> None:
        """Take in what one swap changed."""
        self._swaps += 1
        self._counts.update(swap.counts)
        self._first += swap.first[: MOST_NAMES - len(self._first)]
        self._noted.set()

    async def run(self) -> None:
        """Log until cancelled; then log what is left."""
        try:
            while True:
                await self._noted.wait()
                self._write()
                await trio.sleep(PACE)
        finally:
            self._write()

    def _write(self) -> None:
        if not self._swaps:
            return
        summed = SwapChanges(self._counts, self._first)
        log.info(
            "table changed",
            **{str(what): count for what, count in summed.counts.items()},
            names=[str(change) for change in summed.first],
            more=summed.more,
            swaps=self._swaps,
        )
        self._clear()

    def _clear(self) -> None:
        self._swaps = 0
        self._counts: Counter[What] = Counter()
        self._first: list[TableChange] = []
        self._noted = trio.Event()
