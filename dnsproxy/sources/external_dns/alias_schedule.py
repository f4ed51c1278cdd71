"""The schedule of alias look-ups: which name is looked up next, at once if it is new and again after its TTL.

The law: pure; the namespaces take turns, and a name that is not sought any more is dropped. Each name is looked up by
one worker at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable
from typing import Final

from dnsproxy.hostnames.fair_queue import FairQueue, Turn

SHORTEST: Final = 30.0
"""Seconds until a name is looked up again: a shorter TTL would load the upstreams, and swap the table each time."""
LONGEST: Final = 300.0
"""Seconds: a record that moves must not be followed hours later."""
_MOST: Final = 10_000
"""Names of one namespace that wait for their turn; others are tried again after SHORTEST."""


def pause_of(ttl: int | None) -> float:
    """Seconds until a name is looked up again. `ttl`: of its record; None without a record, or without an answer."""
    return SHORTEST if ttl is None else min(max(float(ttl), SHORTEST), LONGEST)


class AliasSchedule:
    """`namespaces` are those of the objects that need a name."""

    def __init__(self, namespaces: Callable[[str], Iterable[str]]) -> None:
        self._namespaces = namespaces
        self._due: dict[str, float] = {}
        """Of each name that is sought and not looked up just now."""
        self._heap: list[tuple[float, str]] = []
        self._queue = FairQueue(_MOST, newest_first=False)
        self._busy: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._due) + len(self._busy)

    def seek(self, names: Iterable[str], *, now: float) -> None:
        """These names are sought now."""
        for name in names:
            if name not in self._busy:
                self._put(name, now)

    def drop(self, names: Iterable[str]) -> None:
        """These names are sought no more."""
        for name in names:
            self._due.pop(name, None)
            self._queue.discard(name)

    def take(self, now: float, full: Container[str] = ()) -> Turn | None:
        """The next name that is due, of a namespace that is not full; done() must follow."""
        self._enlist(now)
        turn = self._queue.take(full)
        if turn is not None:
            self._queue.discard(turn.hostname)
            self._due.pop(turn.hostname, None)
            self._busy[turn.hostname] = None
        return turn

    def done(self, name: str, *, now: float, pause: float) -> None:
        """A look-up has ended; the next one is due after so many seconds, if the name is sought still."""
        self._busy.pop(name, None)
        if any(True for _ in self._namespaces(name)):
            self._put(name, now + pause)

    def next_due(self, full: Container[str] = ()) -> float | None:
        """When take() may have a name; in the past if it has one now, None if there is nothing to wait for."""
        if self._queue.has_turn(full):
            return 0.0
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _put(self, name: str, at: float) -> None:
        self._due[name] = at
        heapq.heappush(self._heap, (at, name))

    def _enlist(self, now: float) -> None:
        """Queue the names that are due."""
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            if self._due.get(name) != at:
                continue  # dropped, or due at another time
            room = [self._queue.put(name, namespace) for namespace in self._namespaces(name)]
            if not any(room):
                self._put(name, now + SHORTEST)
