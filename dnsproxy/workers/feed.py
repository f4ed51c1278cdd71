"""The feed of a table: a writer that sends every change on, and the reader that makes the same table of it.

The law: a reader shows versions of the writer whole and in their order, and no other table. Rows are sent while the
writer still collects them, so that a reader shows a version of any size soon after the writer does. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.replace.balancers import NO_BALANCERS, Balancers
from dnsproxy.workers.messages import Begin, HostRows, Publish, Row

_ROWS: Final = 100
"""Rows in one message: a fraction of a slice of the writer's loop."""


class FeedWriter(TableWriter):
    """A TableWriter that reports its changes to `send`."""

    def __init__(
        self,
        *,
        ttl: int,
        never: Iterable[str] = (),
        version: int = 0,
        send: Callable[[Begin | HostRows | Publish], None],
    ) -> None:
        never = tuple(never)
        super().__init__(ttl=ttl, never=never)
        self.version = version
        """That of the last table; `version` at first, that of the writer before it."""
        self._send = send
        self._rows: list[Row] = []
        self._zones: tuple[str, ...] = ()
        self._sent: tuple[tuple[str, ...], frozenset[str], Balancers] = (), frozenset(), NO_BALANCERS
        """The closed zones, the unready Services and the load balancers of the last version."""
        send(Begin(ttl, never))

    def put(self, host: Host) -> tuple[str, ...]:
        """See TableWriter."""
        before = super().put(host)
        self._rows.append((host.hostname, host.reach, host.addresses, host.barred, host.service, host.claimed))
        if len(self._rows) == _ROWS:
            self._flush()
        return before

    def close(self, zones: Iterable[str]) -> None:
        """See TableWriter."""
        self._zones = tuple(zones)
        super().close(self._zones)

    def publish(self) -> HostTable:
        """See TableWriter."""
        changed = self._is_open
        table = super().publish()
        if changed:
            self._flush()
            self.version += 1
            closed, unready, balancers = self._sent
            self._sent = self._zones, self._unready, self._leads.balancers
            self._send(
                Publish(
                    self.version,
                    None if closed == self._zones else self._zones,
                    None if unready == self._unready else self._unready,
                    None if balancers == self._leads.balancers else self._leads.balancers,
                )
            )
        return table

    def _flush(self) -> None:
        if self._rows:
            self._send(HostRows(self._rows))
            self._rows = []


class FeedReader:
    """The table of a feed. The rows of the next version are pending until a caller writes them, or until publish()."""

    def __init__(self) -> None:
        self.version = 0
        self.pending: list[Begin | HostRows] = []
        self._writer = TableWriter(ttl=0)

    def take_in(self) -> Generator[None, None, None]:
        """Write the pending rows, one step per row."""
        for message in self.pending:
            if isinstance(message, Begin):
                self._writer = TableWriter(ttl=message.ttl, never=message.never)
                continue
            for row in message.rows:
                self._writer.put(Host(*row))
                yield
        self.pending = []

    def publish(self, message: Publish) -> HostTable:
        """The table of this version."""
        for _ in self.take_in():
            pass
        if message.closed is not None:
            self._writer.close(message.closed)
        if message.unready is not None:
            self._writer.forward(message.unready)
        if message.balancers is not None:
            self._writer.lead(message.balancers)
        self.version = message.version
        return self._writer.publish()

    def table(self) -> HostTable:
        """The table of the last version. Not after take_in(), which began the next one."""
        return self._writer.publish()

    def prepare(self) -> None:
        """Prepare for changes, so that a fork of this process shares the work and the memory."""
        self._writer.open()
