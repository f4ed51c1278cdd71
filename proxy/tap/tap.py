"""The tap of one relay: where ended connections are noted, and the listeners that get them.

The law: without a listener a connection costs one look at `listening`. Noting never waits: a connection for which a
listener's queue has no room is dropped and counted there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import trio

from proxy.tap.ended import Ended
from proxy.tap.filters import TapFilter

QUEUE: Final = 4_096
"""Connections that wait for one listener: less than 3 MB."""
CHUNK: Final = 64
"""Connections that a listener gets at once; other tasks have their turn in between."""


class Subscription:
    """One listener's queue; close it in the end. It may be opened again."""

    def __init__(self, tap: Tap, wanted: TapFilter, on_drop: Callable[[int], None]) -> None:
        self._tap = tap
        self._wanted = wanted
        self._on_drop = on_drop
        self._queue: deque[Ended] = deque()
        self._arrived = trio.Event()
        self._dropped = 0

    def offer(self, event: Ended) -> None:
        """Keep a connection if it is wanted and there is room."""
        if not self._wanted.wants(event):
            return
        if len(self._queue) >= QUEUE:
            self.drop(1)
            return
        self._queue.append(event)
        self._arrived.set()

    def drop(self, count: int) -> None:
        """Count connections that are lost, here or before."""
        if count:
            self._dropped += count
            self._arrived.set()
            self._on_drop(count)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self._queue or self._dropped)

    async def receive(self) -> tuple[list[Ended], int]:
        """The next connections, CHUNK at most, and how many were dropped before the last of them.

        A cancelled call has taken nothing.
        """
        await trio.lowlevel.checkpoint()
        while self.is_empty:
            self._arrived = trio.Event()
            await self._arrived.wait()
        return self.take()

    def take(self) -> tuple[list[Ended], int]:
        """The same, without waiting."""
        dropped, self._dropped = self._dropped, 0
        return [self._queue.popleft() for _ in range(min(CHUNK, len(self._queue)))], dropped

    def open(self) -> None:
        """Listen."""
        self._tap.add(self)

    def close(self) -> None:
        """No longer listen; what was noted before can still be taken."""
        self._tap.forget(self)


class Tap:
    """All listeners of one relay."""

    def __init__(self) -> None:
        self.listening = False
        """Whether anything must be noted."""
        self.changed = trio.Event()
        """Set, and replaced, when `listening` changes."""
        self._subscriptions: list[Subscription] = []

    def subscribe(
        self, wanted: TapFilter | None = None, *, on_drop: Callable[[int], None] = lambda _: None
    ) -> Subscription:
        """A listener until it is closed; `on_drop` is called with the number of lost connections."""
        subscription = Subscription(self, wanted or TapFilter(), on_drop)
        subscription.open()
        return subscription

    def add(self, subscription: Subscription) -> None:
        """A listener was opened; a second call does nothing."""
        if subscription not in self._subscriptions:
            self._subscriptions.append(subscription)
            self._note_change()

    def forget(self, subscription: Subscription) -> None:
        """A listener was closed; a second call does nothing."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._note_change()

    def note(self, event: Ended) -> None:
        """A connection has ended."""
        for subscription in self._subscriptions:
            subscription.offer(event)

    def note_dropped(self, count: int) -> None:
        """Another process has lost so many."""
        for subscription in self._subscriptions:
            subscription.drop(count)

    def _note_change(self) -> None:
        if self.listening != bool(self._subscriptions):
            self.listening = bool(self._subscriptions)
            self.changed.set()
            self.changed = trio.Event()
