"""Long work in slices, so that what else runs on the loop, DNS answers above all, never waits long for it.

The law: work is a generator that yields wherever others may have their turn, and knows of no loop; here, and only here,
is said how long a slice is. A thread would be no cure: it takes the interpreter lock from the loop for longer.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import closing
from time import perf_counter
from typing import Final, TypeVar

import trio

SLICE: Final = 0.0005
"""Seconds: a tenth of what an answer may be late, because several slices and a batch of queries can fall together."""

Result = TypeVar("Result")


async def in_slices(steps: Generator[None, None, Result]) -> Result:
    """Run steps to their end, others having their turn after each slice; what they return.

    A step should take some ten microseconds at most: one that takes longer than a slice is a slice of its own.
    """
    with closing(steps):
        try:
            while True:
                end = perf_counter() + SLICE
                while perf_counter() < end:
                    next(steps)
                # The collector counts what is new less what was freed. Work that puts 100,000 objects in the place of
                # as many others would call for it once, and have it walk through all of them at once.
                gc.collect(0)
                await trio.lowlevel.checkpoint()
        except StopIteration as done:
            result: Result = done.value
            return result
