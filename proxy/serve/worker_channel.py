"""A worker's end of the stream to its supervisor: reports, and connections that have ended, while someone listens.

The law: one writer at a time, so no line is cut. Connections wait in one bounded queue; what it has no room for is
counted. Tested in test_supervisor.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

import trio

from proxy.serve.worker_reports import LISTEN, Report, format_ended, format_report
from proxy.tap.tap import Tap

LAST_SECONDS: Final = 1.0
"""For the connections that have ended last."""


class WorkerChannel:
    """The stream to the supervisor."""

    def __init__(self, stream: trio.SocketStream, tap: Tap) -> None:
        self._stream = stream
        self._turn = trio.Lock()
        self._subscription = tap.subscribe()
        self._subscription.close()

    async def report(self, report: Report) -> None:
        """Send a report."""
        await self._send(format_report(report))

    async def follow_supervisor(self) -> None:
        """Listen when it says so; send SIGTERM to this process when it is gone."""
        with contextlib.suppress(trio.BrokenResourceError):
            while told := await self._stream.receive_some(1):
                if told == LISTEN:
                    self._subscription.open()
                else:
                    self._subscription.close()
        os.kill(os.getpid(), signal.SIGTERM)

    async def pass_on_ended(self) -> None:
        """Send the connections that end, until cancelled."""
        while True:
            await self._send(format_ended(*await self._subscription.receive()))

    async def finish(self) -> None:
        """Send the connections that have ended since, for LAST_SECONDS at most."""
        with trio.move_on_after(LAST_SECONDS):
            while not self._subscription.is_empty:
                await self._send(format_ended(*self._subscription.take()))

    async def _send(self, octets: bytes) -> None:
        async with self._turn:
            # The supervisor may be gone; follow_supervisor notices it too.
            with contextlib.suppress(trio.BrokenResourceError):
                await self._stream.send_all(octets)
