"""Polling for a condition that has no event: the state of another process, seen by asking it.

The law: the caller waits no longer than the condition takes, and a condition that stays false fails with its name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_PAUSE: Final = 0.02
"""Seconds between two looks."""


def poll_until(condition: Callable[[], object], what: str, *, seconds: float) -> None:
    """Wait until a condition holds. Fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(_PAUSE)
