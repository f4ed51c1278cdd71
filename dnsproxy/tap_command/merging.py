"""Events of several servers, merged by the time at which they ended.

The law: pure. Every event comes out once. An event waits for others at most WINDOW, so two come out in the order of
their times if the later one did not arrive more than WINDOW before the earlier one. At most HELD wait.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from typing import Final

from dnsproxy.tap.event import TapEvent

WINDOW: Final = 0.5
"""Seconds. The API server passes on what a pod sends after 0.2 s at most (FlushInterval of its proxy), and pods send in
turns; a person does not notice half a second."""
HELD: Final = 10_000
"""Events that wait; with more, the earliest ones come out before their time."""


class Merging:
    """The events that wait for earlier ones."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, int, TapEvent]] = []
        """A heap by time; the number keeps the order of arrival for equal times."""
        self._arrived: deque[tuple[float, str]] = deque()
        """When events arrived, and their times."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, event: TapEvent, *, now: float) -> None:
        """Keep an event that arrived; `now` only grows."""
        self._number += 1
        heapq.heappush(self._waiting, (event.time, self._number, event))
        self._arrived.append((now, event.time))

    def take(self, *, now: float) -> Iterator[TapEvent]:
        """The events whose time has come, each with all earlier ones."""
        while self._arrived and (now - self._arrived[0][0] >= WINDOW or len(self._arrived) > HELD):
            _, time = self._arrived.popleft()
            yield from self._take_to(time)

    def take_all(self) -> Iterator[TapEvent]:
        """All events that wait."""
        self._arrived.clear()
        while self._waiting:
            yield heapq.heappop(self._waiting)[2]

    def _take_to(self, time: str) -> Iterator[TapEvent]:
        while self._waiting and self._waiting[0][0] <= time:
            yield heapq.heappop(self._waiting)[2]
