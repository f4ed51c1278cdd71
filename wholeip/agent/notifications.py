"""Tells when the kernel's table may have been changed by another program: on notification, and now and then.

The law: a change that is not notified is found by the next periodic comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio

from wholeip.agent.pace import ReconcilePace
from wholeip.kernel.nft import Table
from wholeip.ruleset.nft_errors import NftFailed

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


class Notifications:
    """Calls `suspect` when the table has to be compared."""

    def __init__(self, table: Table, pace: ReconcilePace, suspect: Callable[[], None]) -> None:
        self._table = table
        self._pace = pace
        self._suspect = suspect
        self._watching = False

    async def run(self) -> None:
        """Watch until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            nursery.start_soon(self._suspect_periodically)

    async def _watch(self) -> None:
        """Listen to the kernel's notifications; without them, the periodic comparisons must do."""
        logged = ""
        while True:
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self._table.watch_changes, self._suspect)
                    self._watching = True
                    if logged:
                        # Changes in the meantime were not notified.
                        self._suspect()
            except* NftFailed as group:
                cause = str(_first(group))
                if cause != logged:
                    log.warning("no notifications from the kernel; the table is compared periodically", cause=cause)
                logged = cause
            self._watching = False
            await trio.sleep(self._pace.backoff_limit)

    async def _suspect_periodically(self) -> None:
        while True:
            await trio.sleep(self._pace.resync if self._watching else self._pace.resync_blind)
            self._suspect()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
