"""Pod poller: reads what pods say again and again, often while they answer, and rarely while none does.

The law: a thin shell without decisions. Other pods are asked at once; no pods are asked nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NoReturn

import trio

from sidecar.values.endpoints import Endpoint

POLL: Final = 0.3
"""Seconds between two questions; the answer is usually 304 without a body."""
LONGEST: Final = 15.0
"""Seconds between two questions while no pod answers: POLL, doubled up to this."""


class PodPoller:
    """Calls `read` with the pods to follow; it returns whether any of them answered."""

    def __init__(self, read: Callable[[Sequence[Endpoint]], Awaitable[bool]]) -> None:
        self._read = read
        self._pods: tuple[Endpoint, ...] = ()
        self._changed = trio.Event()

    def follow(self, pods: tuple[Endpoint, ...]) -> None:
        """Ask these pods, and none without any."""
        if pods != self._pods:
            self._pods = pods
            self._changed.set()

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        pause = POLL
        while True:
            self._changed = trio.Event()
            if not self._pods:
                await self._changed.wait()
                continue
            answered = await self._read(self._pods)
            pause = POLL if answered else min(LONGEST, pause * 2)
            with trio.move_on_after(pause):
                await self._changed.wait()
