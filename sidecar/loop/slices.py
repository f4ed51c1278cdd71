"""Long work in slices, so that other tasks on the loop, DNS answers above all, never wait long for it.

The law: work is a generator that yields wherever other tasks may run, and knows no event loop; only this module defines
the length of a slice. A thread would be worse: it takes the interpreter lock away from the loop for longer.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from time import perf_counter
from typing import Final, TypeVar

import trio

SLICE: Final = 0.0005
"""Seconds: a tenth of the delay that an answer may have, because several slices and a batch of queries can coincide."""

Result = TypeVar("Result")


async def in_slices(
    steps: Generator[None, None, Result], *, give_way: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
) -> Result:
    """Run the steps to their end, with other tasks after each slice; returns their result.

    `give_way` is awaited after each slice; it may wait for work that is more urgent, and has to be a checkpoint. Where
    that work has a thread, the slices would take the interpreter lock from it again and again.

    A step should take about ten microseconds at most; a step longer than a slice is a slice by itself.
    """
    with closing(steps):
        try:
            while True:
                end = perf_counter() + SLICE
                while perf_counter() < end:
                    next(steps)
                # The collector counts allocations minus deallocations. Work that replaces 100,000 objects would trigger
                # it once, and it would then walk through all of them in one go.
                gc.collect(0)
                await give_way()
        except StopIteration as done:
            result: Result = done.value
            return result
