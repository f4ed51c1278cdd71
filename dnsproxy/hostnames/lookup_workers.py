"""Lookup workers: a fixed number of tasks that look hostnames up side by side, whatever the number of names.

The law: a thin shell over lookup_slots.py, which knows no record and no verdict. One worker at a time waits for a turn;
lookups begin at least `gap` seconds apart, and a slot is free again however its lookup ends.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import NoReturn

import trio

from dnsproxy.hostnames.fair_queue import Turn
from dnsproxy.hostnames.lookup_slots import LookupSlots


class LookupWorkers:
    """`seek` waits for the turn of a namespace that is not full; `look` bounds its waits; `freed` follows each."""

    def __init__(
        self,
        slots: LookupSlots,
        *,
        gap: float,
        seek: Callable[[LookupSlots], Awaitable[Turn]],
        look: Callable[[str], Awaitable[None]],
        freed: Callable[[], None],
    ) -> None:
        self._slots = slots
        self._gap = gap
        self._seek = seek
        self._look = look
        self._freed = freed
        self._turns = trio.Lock()
        self._next = -math.inf

    async def run(self) -> None:
        """Look up until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._slots.most):
                nursery.start_soon(self._work)

    async def _work(self) -> NoReturn:
        while True:
            turn = await self._take()
            try:
                await self._look(turn.hostname)
            finally:
                self._slots.give_back(turn.namespace)
                self._freed()

    async def _take(self) -> Turn:
        async with self._turns:
            await trio.sleep_until(self._next)
            turn = await self._seek(self._slots)
            self._next = trio.current_time() + self._gap
            self._slots.take(turn.namespace)
            return turn
