"""`--access-log`: one JSON line on stdout for each connection that has ended; the log of the program is on stderr.

The law: the relay never waits for the reader of stdout. Lines wait in one bounded queue; what it has no room for is
lost and counted, and the log says when that begins and ends. A reader that has gone ends the access log and nothing
else.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.tap.ended import format_batch
from proxy.tap.tap import Tap
from sidecar.values.errors import StartError

FLUSH_SECONDS: Final = 1.0
"""For the last lines, when the relay has ended."""
# A pipe that poll(2) calls writable takes this many octets without blocking (PIPE_BUF, pipe(7)).
_MOST: Final = select.PIPE_BUF

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class AccessLog(Collector):
    """Writes what the tap notes to a descriptor."""

    def __init__(self, tap: Tap, descriptor: int) -> None:
        self.lost = 0
        """Lines for which there was no room."""
        self._descriptor = descriptor
        self._subscription = tap.subscribe(on_drop=self._note_lost)
        self._unwritten = b""
        self._is_losing = False
        self._waits = True
        """Whether the descriptor can be waited for: a file cannot."""

    async def run(self) -> None:
        """Write until cancelled, or until the reader has gone."""
        try:
            while True:
                await self._write()
                self._unwritten = format_batch(*await self._subscription.receive())
        except OSError as error:
            self._subscription.close()
            log.error("access log ended, stdout cannot be written", reason=str(error))  # noqa: TRY400  # no bug

    async def finish(self) -> None:
        """Write what is left, for FLUSH_SECONDS at most."""
        self._subscription.close()
        with trio.move_on_after(FLUSH_SECONDS):
            try:
                await self._write()
                while not self._subscription.is_empty:
                    self._unwritten = format_batch(*self._subscription.take())
                    await self._write()
            except OSError:
                return

    def describe(self) -> list[Metric]:
        """No names in advance: to learn them, the registry would collect once."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current metric families."""
        yield CounterMetricFamily(
            "proxy_access_log_lost", "Lines of --access-log that were lost: stdout was not read.", value=self.lost
        )

    def _note_lost(self, count: int) -> None:
        self.lost += count
        if not self._is_losing:
            self._is_losing = True
            log.warning("access log loses lines, stdout is not read", lost=self.lost)

    async def _write(self) -> None:
        while self._unwritten:
            await self._wait()
            end = self._unwritten.rfind(b"\n", 0, _MOST) + 1
            written = os.write(self._descriptor, self._unwritten[: end or _MOST])
            self._unwritten = self._unwritten[written:]
        if self._is_losing and self._subscription.is_empty:
            self._is_losing = False
            log.info("access log is complete again", lost=self.lost)

    async def _wait(self) -> None:
        if self._waits:
            try:
                await trio.lowlevel.wait_writable(self._descriptor)
            except PermissionError:
                # epoll(7) refuses files, which are always writable.
                self._waits = False
        else:
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def access_log(tap: Tap, *, on: bool) -> AsyncIterator[list[AccessLog]]:
    """The access log of a relay that runs within the block; without one if not `on`. Raises StartError."""
    if not on:
        yield []
        return
    if sys.stdout is None:
        raise StartError("--access-log: stdout is closed")
    written = AccessLog(tap, sys.stdout.fileno())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(written.run)
        yield [written]
        nursery.cancel_scope.cancel()
    await written.finish()
