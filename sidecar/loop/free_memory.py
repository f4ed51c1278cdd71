"""Memory that the C library holds free: given back to the kernel after work that has used much of it.

The law: nothing waits for it. glibc by itself gives back only what is free at the end of its heap, and one block in use
keeps all pages below it; malloc_trim(3) gives back free pages anywhere. After a list of 100,000 objects it takes 1 to
8 ms and finds 7 to 13 MiB. It runs in a thread, without the interpreter lock, when the work has been over for a second.
A C library without it, such as musl, is left alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import trio

MUCH: Final = 1_000
"""Steps of work, such as rows of a table, that are worth a look at the heap."""
_QUIET: Final = 1.0
"""Seconds with less work than that. The parts of one long list follow one another more closely."""


def find_trim() -> Callable[[], int] | None:
    """malloc_trim(0) of this process; None if its C library has none."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return partial(trim, 0)


async def give_back() -> None:
    """Give free pages back to the kernel, unless no thread can be started."""
    trim = find_trim()
    if trim is None:
        return
    with suppress(RuntimeError):
        await trio.to_thread.run_sync(trim)


class FreeMemory:
    """Counts work; run() must be running."""

    def __init__(self, *, give_back: Callable[[], Awaitable[None]] = give_back) -> None:
        self._give_back = give_back
        self._steps = 0
        self._much = trio.Event()

    def note(self, steps: int) -> None:
        """So much work was done."""
        self._steps += steps
        if self._steps >= MUCH:
            self._much.set()

    async def run(self) -> None:
        """Give memory back each time that much work is over, until cancelled."""
        while True:
            await self._much.wait()
            while self._steps >= MUCH:
                self._steps = 0
                await trio.sleep(_QUIET)
            self._much = trio.Event()
            await self._give_back()
