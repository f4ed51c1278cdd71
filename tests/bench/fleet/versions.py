"""When the primary published which serial, and how far behind the secondaries were."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dnsproxy.zone.serials import is_newer
from tests.bench.fleet.crowd import Event
from tests.bench.fleet.one_transfer import ask_serial

_LOOK_SECONDS: Final = 0.01

Published = tuple[float, int]
"""When a serial was seen first (time.monotonic), and the serial."""


@contextmanager
def watched(port: int, zone: bytes) -> Iterator[list[Published]]:
    """The serials of a primary during a block."""
    found: list[Published] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            serial = ask_serial(port, zone)
            if serial is not None and (not found or is_newer(serial, found[-1][1])):
                found.append((time.monotonic(), serial))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def lags(published: Sequence[Published], events: Sequence[Event]) -> list[float]:
    """For each version and secondary the seconds until it had this version or a newer one; the first version aside.

    A secondary that never had a version counts for those that it had.
    """
    base = published[0][1] if published else 0
    steps = [(serial - base) % (1 << 32) for _, serial in published]
    had: dict[str, int] = {}
    found = []
    for event in sorted(events, key=lambda one: one.at):
        step = (event.serial - base) % (1 << 32)
        first = had.get(event.address, 1)
        last = bisect.bisect_right(steps, step)
        found += [event.at - published[number][0] for number in range(first, last)]
        had[event.address] = max(first, last)
    return found
