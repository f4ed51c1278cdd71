"""The keeper: applies the reports of the sources and swaps the table that the server answers from.

The law: changes that arrive together become one swap, and however many they are, no answer waits for them longer than
one slice. Until each source has reported once, the server is not ready.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Final, Protocol

import structlog
import trio

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.verdict import Verdict
from sidecar.loop.slices import in_slices

_GATHER: Final = 0.01
"""Seconds after a swap in which further changes are gathered, so that a burst of events becomes one swap."""
_REST: Final = 10
"""Wait this multiple of the time that opening the table took, so that opening takes at most about 10 % of the time."""

_WARNINGS: Final = 20
"""Names that another namespace waits for, logged one by one of a swap."""


class TableObserver(Protocol):
    """Told of the tables, and of what they were made of: each has exactly what was judged before it.

    A table that is shown amid a swap has half of its rows; observers are told of the one that ends the swap.
    """

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:
        """A row for the next table; one without addresses leaves it. `before`: the addresses that it had."""

    def begin_whole(self) -> None:
        """What is judged from now on until the next table is all that it has."""

    def published(self, table: HostTable) -> None:
        """The next table."""


def _make_writer(ttl: int, never: tuple[str, ...]) -> TableWriter:
    return TableWriter(ttl=ttl, never=never)


class TableKeeper:
    """Owns the registry and the next table.

    `make_writer` makes a writer for a TTL and for denied names; `settle` waits until others have what was written;
    `on_swap` gets the number of names that each swap judged.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        ttl: int,
        publish: Callable[[HostTable], None],
        sources: Iterable[str],
        make_writer: Callable[[int, tuple[str, ...]], TableWriter] = _make_writer,
        settle: Callable[[], Awaitable[None]] | None = None,
        on_swap: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.registry = registry
        self.names = 0
        self.swapped_time: float | None = None
        """When the table was last swapped, in seconds since the epoch; None before the first swap."""
        self.observers: list[TableObserver] = []
        self._retelling = False
        self._swapping = False
        self._made_for = ttl, registry.denied
        self._make_writer = make_writer
        self._settle = settle
        self._on_swap = on_swap
        self._writer = make_writer(ttl, registry.denied)
        self._former: TableWriter | None = None
        """While another one writes every row again, the writer that has the rows of before."""
        self._publish = publish
        self._unsynced = dict.fromkeys(sources)
        self._unpublished: set[str] = set()
        self._changed = trio.Event()
        self._epoch = time.time() - trio.current_time()
        self._log = structlog.get_logger("dnsproxy.table")

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The sources whose first full report is not in the table yet."""
        return tuple(self._unsynced)

    def wake(self) -> None:
        """Schedule a swap: hostnames in the registry were touched."""
        self._changed.set()

    def retell(self) -> None:
        """Judge every name again for the observers, which then know all of them."""
        self._retelling = True
        self._changed.set()

    def forward(self, unready: frozenset[str]) -> None:
        """Forward the names of these Services, `NAMESPACE/NAME`, at once: judging the names again takes seconds."""
        if self._writer.forward(unready):
            self._show(self._writer.publish())

    def synced(self, source: str) -> None:
        """Note that a source has reported all its objects."""
        if source in self._unsynced:
            self._unpublished.add(source)
            self._changed.set()

    async def run(self) -> None:
        """Swap the table after every change, until cancelled."""
        while True:
            with trio.move_on_at(self._next_due()):
                await self._changed.wait()
            self._changed = trio.Event()
            took = await self.swap()
            await trio.sleep(max(_GATHER, _REST * took))

    async def swap(self) -> float:
        """Bring the table up to date with the registry. Returns the processor time that opening it took, in seconds."""
        reported, self._unpublished = self._unpublished, set()
        self._swapping = True
        begun = time.thread_time()
        self.registry.begin()
        self._renew_writer()
        self._writer.open()
        took = time.thread_time() - begun
        if self._retelling:
            self._retelling = False
            self.registry.touch(self.registry.every_name())
            for observer in self.observers:
                observer.begin_whole()
        changed = await in_slices(self._take_in())
        if self._settle is not None:
            await self._settle()
            # Names that were touched meanwhile: what follows must fit all of them.
            changed += await in_slices(self._take_in())
        self._swapping, self._former = False, None
        self._writer.close(self.registry.closed)
        self._writer.forward(self.registry.targets.unready)
        self._writer.lead(self.registry.balancers)
        self._show(self._writer.publish())
        for source in reported:
            self._unsynced.pop(source, None)
        if not self._unsynced:
            self.registry.holds.begin()
        self._log_news()
        self._on_swap(changed)
        if reported:
            self._log.info("table swapped", names=self.names, changed=changed, waiting_for=list(self._unsynced))
        return took

    def _renew_writer(self) -> None:
        """Write every row again if a primary now has another TTL or other denied names."""
        wanted = self.registry.ttl or self._made_for[0], self.registry.denied
        if wanted != self._made_for:
            self._made_for = wanted
            self._former = self._writer
            self._writer = self._make_writer(*wanted)
            self.registry.touch(self.registry.every_name())

    def _show(self, table: HostTable) -> None:
        self._publish(table)
        for observer in () if self._swapping else self.observers:
            observer.published(table)
        self.names = len(table)
        self.swapped_time = time.time()

    def _take_in(self) -> Generator[None, None, int]:
        """Judge and write every touched name, one step per name. Returns their number."""
        changed = 0
        for host, verdict in self.registry.judgements(self._now()):
            before = self._writer.put(host)
            if self._former is not None:
                before = before or self._former.addresses_of(host)
            for observer in self.observers:
                observer.judged(host, verdict, before=before)
            changed += 1
            yield
        return changed

    def _now(self) -> float:
        """Seconds since the epoch, on a clock that never jumps: a correction of the time must end no hold."""
        return self._epoch + trio.current_time()

    def _next_due(self) -> float:
        """When the next row changes by itself, on trio's clock."""
        due = self.registry.due
        return math.inf if due is None else due - self._epoch

    def _log_news(self) -> None:
        news = self.registry.holds.take_news()
        for one in news[:_WARNINGS]:
            self._log.warning(
                "another namespace waits for a name",
                hostname=one.hostname,
                namespace=one.holder.namespace,
                origin=str(one.rival),
                seconds=round(one.until - self._now()),
            )
        if len(news) > _WARNINGS:
            self._log.warning("other namespaces wait for more names", count=len(news) - _WARNINGS)
