"""A limit on what is open at the same time: a newcomer takes the place of the oldest.

The law: one more than the most cancels the oldest, so clients that stay cannot keep others out. A block that gives up
its place is not cancelled any more, and its owner bounds it in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio


class Newest:
    """At most this many at the same time: one more cancels the oldest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._scopes: dict[int, trio.CancelScope] = {}

    @contextmanager
    def one(self) -> Iterator[Callable[[], None]]:
        """Hold one place; the block is cancelled, and left, when a newcomer needs it.

        The value is a function that gives the place up before the block ends.
        """
        with trio.CancelScope() as scope:
            self._scopes[id(scope)] = scope
            if len(self._scopes) > self._most:
                self._scopes.pop(next(iter(self._scopes))).cancel()

            def leave() -> None:
                self._scopes.pop(id(scope), None)

            try:
                yield leave
            finally:
                leave()
