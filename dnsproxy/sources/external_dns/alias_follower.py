"""Follows the aliases of DNSEndpoints: through the table when its rows change, and by look-ups at the upstreams.

The law: a thin shell over alias_schedule.py and dns_endpoint_source.py, which never delays a query: names are looked up
when an object or the table changes, and again after their TTL. Without an answer the last addresses stay. Look-ups run
side by side, and a namespace whose nameserver is silent delays its own names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.addresses import PublicRecord
from dnsproxy.hostnames.fair_queue import Turn
from dnsproxy.hostnames.lookup_slots import LookupSlots
from dnsproxy.hostnames.lookup_workers import LookupWorkers
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.sources.external_dns.alias_schedule import AliasSchedule, pause_of
from dnsproxy.sources.external_dns.dns_endpoint_source import DnsEndpointSource

_AT_ONCE: Final = 16
_EACH: Final = 4
"""Of these, for one namespace."""
_GAP: Final = 0.05
"""Seconds between the beginnings of two look-ups."""

Resolve = Callable[[str], Awaitable[PublicRecord | None]]
"""The record of a name as the upstreams know it; None without an answer, after a bounded time."""


class AliasFollower:
    """An observer of the table; run() must be running. `wake` has the source settled soon (SourceFollower.wake)."""

    def __init__(
        self,
        source: DnsEndpointSource,
        *,
        resolve: Resolve,
        wake: Callable[[], None],
        pause: Callable[[int | None], float] = pause_of,
    ) -> None:
        """`pause`: seconds until a name is looked up again, by the TTL of its record."""
        self._source = source
        self._resolve = resolve
        self._wake = wake
        self._pause = pause
        self._schedule = AliasSchedule(source.namespaces)
        self._noted = trio.Event()
        self._judged: dict[str, None] = {}
        source.on_sought = self._seek

    @property
    def names(self) -> int:
        """How many names are looked up from time to time."""
        return len(self._schedule)

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:  # noqa: ARG002
        """See TableObserver: its row is looked up when it is needed."""
        if self._source.is_affected(host.hostname):
            self._judged[host.hostname] = None

    def begin_whole(self) -> None:
        """See TableObserver: what is judged from now on includes every change."""

    def published(self, table: HostTable) -> None:  # noqa: ARG002
        """See TableObserver."""
        judged, self._judged = self._judged, {}
        if self._source.note_table(judged):
            self._wake()

    async def run(self) -> None:
        """Look up until cancelled."""
        slots = LookupSlots(_AT_ONCE, each=_EACH)
        await LookupWorkers(slots, gap=_GAP, seek=self._next, look=self._look, freed=self._noted_again).run()

    def _seek(self, new: set[str], old: set[str]) -> None:
        self._schedule.drop(old)
        self._schedule.seek(new, now=trio.current_time())
        self._noted.set()

    async def _next(self, slots: LookupSlots) -> Turn:
        while True:
            self._noted = trio.Event()
            turn = self._schedule.take(trio.current_time(), slots.full)
            if turn is not None:
                return turn
            due = self._schedule.next_due(slots.full)
            with trio.move_on_at(float("inf") if due is None else due):
                await self._noted.wait()

    async def _look(self, name: str) -> None:
        ttl = None
        try:
            record = await self._resolve(name)
            ttl = record.ttl if record is not None else None
            if self._source.note_record(name, record):
                self._wake()
        finally:
            self._schedule.done(name, now=trio.current_time(), pause=self._pause(ttl))

    def _noted_again(self) -> None:
        self._noted.set()
