"""Settles the shares of names: leaves objects out in slices, and reads those again that are admitted again.

The law: a thin shell over hostnames/name_shares.py. One object is read at a time, of each namespace in turn; an object
that its watch reported in the meantime is not taken from the answer, which may be older.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final

import structlog
import trio

from dnsproxy.hostnames.name_shares import NameShares
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.protocol import Decoder
from sidecar.kubernetes.reading import read_object
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.loop.slices import in_slices

RETRY: Final = 5.0
"""Seconds after a read that failed, for its kind alone."""


class ShareSettler:
    """Settles the shares; run() must be running. `on_claims` gets the hostnames whose claims have changed."""

    def __init__(self, shares: NameShares, *, on_claims: Callable[[frozenset[str]], None]) -> None:
        self._shares = shares
        self._on_claims = on_claims
        self._again: dict[str, Callable[[str], Awaitable[frozenset[str]]]] = {}
        self._due = trio.Event()
        self._failed: dict[str, str] = {}
        """By source, the cause that was logged."""
        self._paused: dict[str, float] = {}
        """Sources with a read that failed, and until when none of theirs is tried."""
        self._log = structlog.get_logger("dnsproxy.shares")
        shares.on_work = self.wake

    @property
    def most_per_object(self) -> int:
        """How many names one object may claim."""
        return self._shares.limits.per_object

    def wake(self) -> None:
        """Settle soon: a namespace may claim more or less than before."""
        self._due.set()

    def register(self, source: str, again: Callable[[str], Awaitable[frozenset[str]]]) -> None:
        """How the objects of a source are reported once more; returns the hostnames whose claims changed."""
        self._again[source] = again
        self.wake()

    def register_collection(
        self,
        source: str,
        client: ApiClient,
        where: Callable[[], Collection[Any] | None],
        *,
        change: Callable[[Mapping[str, Any]], frozenset[str]],
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        """The same for a source whose objects are read with one request each. RBAC: list.

        `where`: the collection at that time; None if the API server does not have it.
        """

        async def again(key: str) -> frozenset[str]:
            collection = where()
            if collection is None:
                return change({key: None})
            found = await read_object(
                client, collection, Decoder(collection.type, collection.annotation_selector), pace, key
            )
            return change({key: found}) if self._shares.is_wanted(source, key) else frozenset()

        self.register(source, again)

    async def run(self) -> None:
        """Settle and read until cancelled."""
        while True:
            with trio.move_on_at(min(self._paused.values(), default=math.inf)):
                await self._due.wait()
            self._due = trio.Event()
            await in_slices(self._settle())
            await self._read_one()

    def _settle(self) -> Generator[None, None, None]:
        for hostnames in self._shares.settle():
            if hostnames:
                self._on_claims(hostnames)
            yield

    async def _read_one(self) -> None:
        now = trio.current_time()
        self._paused = {source: until for source, until in self._paused.items() if until > now}
        place = self._shares.next_wanted(without=self._paused)
        if place is None or place[0] not in self._again:
            return
        try:
            hostnames = await self._again[place[0]](place[1])
        except ApiError as error:
            self._note(place[0], error)
            self._paused[place[0]] = trio.current_time() + RETRY
        else:
            self._failed.pop(place[0], None)
            if hostnames:
                self._on_claims(hostnames)
        self.wake()

    def _note(self, source: str, error: ApiError) -> None:
        """Log once for each cause, not for each attempt."""
        if self._failed.get(source) != error.cause:
            self._failed[source] = error.cause
            what = "cannot read an object whose names have room again"
            self._log.warning(what, kind=source, cause=error.cause, error=str(error))
