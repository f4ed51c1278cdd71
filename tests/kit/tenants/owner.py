"""The owner's name, asked for all the time while tenants attack.

The law: a question waits for its reply; the first wrong or missing answer is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.kit.tenants.public_dns import answer_of

_PACE: Final = 0.05
"""Seconds between two questions: enough to see a gap, and no load."""


class Watch:
    """What the owner's name was answered with."""

    def __init__(self) -> None:
        self.answered = 0
        self.slowest = 0.0
        """Seconds until the answers to A and AAAA were there."""
        self.fault: str | None = None


@contextmanager
def watching(port: int, name: str, address: str) -> Iterator[Watch]:
    """Ask from a thread until the block ends."""
    watch, ending = Watch(), threading.Event()

    def ask() -> None:
        while not ending.wait(_PACE) and watch.fault is None:
            begun = time.monotonic()
            try:
                found = answer_of(port, name)
            except OSError as error:
                watch.fault = f"{name}: {error!r} after {watch.answered} answers"
                return
            if found.addresses != {address}:
                watch.fault = f"{name}: {found} after {watch.answered} answers"
            watch.answered += 1
            watch.slowest = max(watch.slowest, time.monotonic() - begun)

    thread = threading.Thread(target=ask, name="owner")
    thread.start()
    try:
        yield watch
    finally:
        ending.set()
        thread.join()
