"""A route of the admin port whose document is counted from all names of a registry.

The law: a document is made on request if a name was judged since the last one, in slices, and once for all concurrent
requests. What is new is in the next document, unless very many names have changed; what vanished leaves it after some
seconds. However fast the names change, counting takes at most half of the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, Protocol

import trio

from dnsproxy.hostnames.registry import Registry
from sidecar.admin.answers import JSON, Answer, Route
from sidecar.loop.slices import in_slices

_REST: Final = 5.0
"""Seconds between two counts of all names, or"""
_REST_FACTOR: Final = 20
"""this multiple of the time that the last count took, whichever is longer."""


class Counted(Protocol):
    """What is counted; it remembers what it has counted of which registry."""

    def add_fresh(self) -> Generator[None, None, bool]:
        """Add what the names judged since the last call have new; False if that needs a count."""
        ...

    def count(self) -> Generator[None, None, None]:
        """Count all names anew."""
        ...


class CountedRoute:
    """Serves a document at a path: `write` makes it of what was counted and of the sources that are waited for.

    `beside`: what it adds without counting; the document is made anew when that is another value.
    """

    def __init__(
        self,
        path: str,
        registry: Registry,
        counted: Counted,
        *,
        write: Callable[[Sequence[str]], tuple[bytes, str]],
        waiting_for: Callable[[], Sequence[str]],
        beside: Callable[[], object] = tuple,
    ) -> None:
        self._path = path
        self._registry = registry
        self._counted = counted
        self._write = write
        self._waiting_for = waiting_for
        self._beside = beside
        self._making = trio.Lock()
        self._made: tuple[object, tuple[bytes, str]] | None = None
        self._counted_up_to = self._added_up_to = -1
        self._ended = -math.inf
        self._took = 0.0

    def routes(self) -> Mapping[str, Route]:
        """The route, for serve_admin."""

        async def show(_: Mapping[str, str]) -> Answer:
            octets, tag = await self._document()
            return Answer(200, octets, JSON, {"ETag": f'"{tag}"'})

        return {self._path: show}

    async def _document(self) -> tuple[bytes, str]:
        async with self._making:
            # Read first: a source that reports during the count is complete in the next document only.
            waiting_for = list(self._waiting_for())
            await self._bring_up_to_date()
            key = self._counted_up_to, self._added_up_to, tuple(waiting_for), self._beside()
            if self._made is None or self._made[0] != key:
                self._made = key, self._write(waiting_for)
            return self._made[1]

    async def _bring_up_to_date(self) -> None:
        judged = self._registry.outcomes.judged
        if judged == self._counted_up_to:
            return
        rested = trio.current_time() - self._ended
        if rested < max(_REST, _REST_FACTOR * self._took):
            if judged == self._added_up_to:
                return
            if await in_slices(self._counted.add_fresh()):
                self._added_up_to = judged
                return
            if rested < self._took:
                return
        begun = time.perf_counter()
        await in_slices(self._counted.count())
        self._counted_up_to = self._added_up_to = judged
        self._ended, self._took = trio.current_time(), time.perf_counter() - begun
