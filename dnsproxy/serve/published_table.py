"""The published table: what of this server's table the readers of its admin port may copy to other places.

The law: rows in which public DNS has a say are published as this process finds out for itself, at a bounded pace and
only while somebody reads. Until each of their names has been asked about once, the table is not complete, and no reader
takes a name away for that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Final

import structlog
import trio

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.table import HostTable
from dnsproxy.replace.balancers import NO_BALANCERS
from dnsproxy.replace.verdicts import UNANSWERED, LeadsTo, Verdict
from dnsproxy.serve.published_rows import Allowance, PublishedRows
from sidecar.admin.answers import Answer, Route
from sidecar.loop.slices import in_slices

Look = Callable[[bytes, Answers], Awaitable[Verdict | None]]
"""Where a claimed exact name leads; None if it cannot be asked yet."""

_AT_ONCE: Final = 8
AWAKE: Final = 120.0
"""Seconds after a request in which names are asked about."""
KEPT: Final = 600.0
"""Seconds after a request for which verdicts are kept; a later reader waits for new ones."""
_PATIENCE: Final = 1.0
"""Seconds that a request waits for verdicts: an installer waits two for its answer, and may read only once."""
_TICK: Final = 1.0
_PUBLIC_DNS: Final = "public DNS"
_REST_FACTOR: Final = 20
"""As for a document (admin/table_document.py)."""


class PublishedTable:
    """The table for two routes; run() must be running.

    `table` returns that of the server, and `waiting_for` the sources that it waits for; without `verified` no row of it
    is claimed, and it is published as it is.
    """

    def __init__(
        self,
        table: Callable[[], HostTable],
        look: Look,
        *,
        waiting_for: Callable[[], Sequence[str]],
        verified: bool = True,
    ) -> None:
        self._source = table
        self._look = look
        self._sources = waiting_for
        self._verified = verified
        self._rows = PublishedRows()
        self._allowance = Allowance()
        self._view = HostTable()
        self._seen: tuple[HostTable, int, tuple[str, ...]] | None = None
        """Of which the view was made: table, version of the rows, and what the table waited for."""
        self._balancers = NO_BALANCERS
        self._waiting: tuple[str, ...] = (_PUBLIC_DNS,)
        self._is_complete = False
        self._rests_until = -math.inf
        self._making = trio.Lock()
        self._read_at = -math.inf
        self._news = trio.Event()
        """Set at each request, and when there are names to ask about."""
        self._known = trio.Event()
        """Set when each followed name has a verdict."""
        self._log = structlog.get_logger("dnsproxy.ownership")

    @property
    def table(self) -> HostTable:
        """The rows to publish, as of the last request; the same object while they are the same."""
        return self._view if self._verified else self._source()

    def waiting_for(self) -> tuple[str, ...]:
        """What that table waits for; names are missing in it until there is nothing."""
        return self._waiting if self._verified else tuple(self._sources())

    def routes(self, routes: Mapping[str, Route]) -> Mapping[str, Route]:
        """The routes that show the table, each with a look at what has changed before."""
        return {path: self._reading(route) for path, route in routes.items()}

    async def read(self) -> None:
        """Note a reader, and bring the table up to date."""
        if not self._verified:
            return
        self._read_at = trio.current_time()
        await self._refresh()
        self._wake()
        if self._rows.unknown:
            with trio.move_on_after(_PATIENCE):
                await self._known.wait()
            await self._refresh()

    async def run(self) -> None:
        """Ask about names while somebody reads, until cancelled."""
        room = trio.Semaphore(_AT_ONCE)
        async with trio.open_nursery() as nursery:
            while True:
                await room.acquire()
                nursery.start_soon(self._find_out, await self._next(), room)

    def _reading(self, route: Route) -> Route:
        async def show(fields: Mapping[str, str]) -> Answer:
            await self.read()
            shown = route(fields)
            return await shown if isawaitable(shown) else shown

        return show

    # --- The view ---

    async def _refresh(self) -> None:
        async with self._making:
            waiting = tuple(self._sources())
            table = self._source()
            seen = table, self._rows.version, waiting
            if self._seen is not None and self._seen[0] is table and self._seen[1:] == seen[1:]:
                return
            if self._is_complete and trio.current_time() < self._rests_until:
                return
            if table.leads.balancers != self._balancers:
                self._balancers = table.leads.balancers
                self._rows.end_all()
            begun = time.perf_counter()
            shown = await in_slices(self._rows.show(table))
            self._rests_until = trio.current_time() + _REST_FACTOR * (time.perf_counter() - begun)
            # Later a new name is missing for a moment, which must not stop the readers of all others.
            self._is_complete = self._is_complete or not (waiting or shown.unknown)
            self._seen, self._view = seen, shown.table
            self._waiting = (*waiting, *(() if self._is_complete or not shown.unknown else (self._progress(),)))

    def _progress(self) -> str:
        names = len(self._rows)
        return f"{_PUBLIC_DNS} ({100 * (names - self._rows.unknown) // max(names, 1)} % of {names:,} claimed names)"

    def _forget(self) -> None:
        self._rows.clear()
        self._view, self._seen = HostTable(), None
        self._waiting, self._is_complete = (_PUBLIC_DNS,), False

    # --- What is asked ---

    async def _next(self) -> bytes:
        """Wait for a name, and for the time to ask about it."""
        while True:
            now = trio.current_time()
            if now >= self._read_at + AWAKE:
                await self._sleep()
                continue
            pause = self._rows.wait(now) or self._allowance.wait(now, names=len(self._rows))
            if not pause and (name := self._rows.take(now)) is not None:
                self._allowance.take()
                return name
            news = self._news
            with trio.move_on_after(min(pause, _TICK)):
                await news.wait()

    async def _sleep(self) -> None:
        """Wait for a reader, and forget the verdicts if that takes long."""
        news = self._news
        with trio.move_on_after(max(0.0, self._read_at + KEPT - trio.current_time())):
            await news.wait()
        if trio.current_time() >= self._read_at + KEPT:
            self._forget()
            await self._news.wait()

    async def _find_out(self, name: bytes, room: trio.Semaphore) -> None:
        try:
            claim = self._source().exact.get(name)
            if claim is None or claim.claimed < Claimed.VERIFIED:
                self._rows.drop(name)
            else:
                verdict = await self._ask(name, claim)
                self._rows.note(name, verdict, trio.current_time())
            if not self._rows.unknown:
                self._known.set()
                self._known = trio.Event()
        finally:
            room.release()

    async def _ask(self, name: bytes, claim: Answers) -> Verdict:
        try:
            while (verdict := await self._look(name, claim)) is None:  # noqa: ASYNC110  # only while the server starts
                await trio.sleep(_TICK)
        except Exception:  # noqa: BLE001  # one look may fail alone: it counts as one without a reply
            self._log.exception("a look for the publication failed")
            return Verdict(LeadsTo.NOWHERE, trio.current_time() + UNANSWERED, sure=False)
        return verdict

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()
