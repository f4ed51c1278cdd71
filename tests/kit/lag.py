"""How late the machine runs this process: a bound on the time of real programs holds while it runs them.

The law: what is measured is the longest delay of a task that wants nothing but to wake up, its last one included.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import trio

_HEARTBEAT: Final = 0.05


@dataclass
class Lag:
    """What was measured so far."""

    longest: float = 0.0
    """In seconds."""

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due = trio.current_time() + _HEARTBEAT
            try:
                await trio.sleep_until(due)
            finally:
                # Cancelled by a task that a stop of the machine has delayed too, and that woke up first.
                self.longest = max(self.longest, trio.current_time() - due)


@asynccontextmanager
async def measured_lag() -> AsyncIterator[Lag]:
    """The lag during the block."""
    lag = Lag()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lag.watch)
        yield lag
        nursery.cancel_scope.cancel()
