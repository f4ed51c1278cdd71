"""Polling for a condition that has no event: the state of another process, seen by asking it.

The law: the caller waits no longer than the condition takes, and a condition that stays false fails with its name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import trio

_PAUSE: Final = 0.02
"""Seconds between two looks, at least."""
_SHARE: Final = 2
"""A pause lasts this many times as long as the look before it, because a look may start a program."""


def poll_until(condition: Callable[[], object], what: str, *, seconds: float) -> None:
    """Wait until a condition holds. Fails with `what` after `seconds`."""
    looked = time.monotonic()
    deadline = looked + seconds
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(min(max(_PAUSE, _SHARE * (now - looked)), deadline - now))
        looked = time.monotonic()


async def pause() -> None:
    """Between two looks of an async test: without it, test and program take a processor each while they wait."""
    await trio.sleep(_PAUSE)
