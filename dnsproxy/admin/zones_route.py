"""The route `/zones` of the admin port: the zones that the cluster's DNS has to ask this server for.

The law: a document is made on request if a name was judged since the last one, in slices, and once for all concurrent
requests. A new zone is in the next document; a zone that vanished leaves it after some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import trio

from dnsproxy.admin.zones_document import PATH, format_zones
from dnsproxy.hostnames.claimed_zones import ClaimedZones
from dnsproxy.hostnames.registry import Registry
from sidecar.admin.answers import JSON, Answer, Route
from sidecar.loop.slices import in_slices

_OWNERSHIP: Final = "ownership lookups"
_REST: Final = 5.0
"""Seconds between two counts of all names, or"""
_REST_FACTOR: Final = 20
"""this multiple of the time that the last count took, whichever is longer."""


class ZonesRoute:
    """Serves the zones of a registry; `waiting_for`: the sources that have not reported everything yet."""

    def __init__(self, registry: Registry, *, waiting_for: Callable[[], Sequence[str]]) -> None:
        self._registry = registry
        self._waiting_for = waiting_for
        self._claimed = ClaimedZones(registry)
        self._making = trio.Lock()
        self._made: tuple[object, tuple[bytes, str]] | None = None
        self._counted = self._added = -1
        self._rests_until = 0.0

    def routes(self) -> Mapping[str, Route]:
        """The route, for serve_admin."""

        async def show(_: Mapping[str, str]) -> Answer:
            octets, tag = await self._document()
            return Answer(200, octets, JSON, {"ETag": f'"{tag}"'})

        return {PATH: show}

    async def _document(self) -> tuple[bytes, str]:
        async with self._making:
            # Read first: a source that reports during the count is complete in the next document only.
            waiting_for = list(self._waiting_for())
            await self._bring_up_to_date()
            if self._claimed.unjudged:
                waiting_for.append(_OWNERSHIP)
            key = self._counted, self._added, tuple(waiting_for)
            if self._made is None or self._made[0] != key:
                claimed = self._claimed
                made = format_zones(claimed.zones(), left_out=claimed.left_out, waiting_for=waiting_for)
                self._made = key, made
            return self._made[1]

    async def _bring_up_to_date(self) -> None:
        judged = self._registry.outcomes.judged
        if judged == self._counted:
            return
        rests = self._counted >= 0 and trio.current_time() < self._rests_until
        if rests and (judged == self._added or await in_slices(self._claimed.add_fresh())):
            self._added = judged
            return
        begun = time.perf_counter()
        await in_slices(self._claimed.count())
        self._counted = self._added = judged
        self._rests_until = trio.current_time() + max(_REST, _REST_FACTOR * (time.perf_counter() - begun))
