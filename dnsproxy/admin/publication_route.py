"""The route `/names.json.gz` of the admin port: the publication of the current table.

The law: a document is built on request if the table has changed, in slices, and once for all concurrent requests. If
the table keeps changing, it is built only now and then. A client that has the current document gets 304 and no body.
Tested in publish/test_source.py, with a publisher that reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import trio

from dnsproxy.admin.publication import Document, names_of, write_document
from dnsproxy.answers.table import HostTable
from sidecar.admin.answers import Answer, Route
from sidecar.loop.slices import in_slices

PATH: Final = "/names.json.gz"
_TYPE: Final = "application/gzip"
_REST: Final = 1.0
"""Seconds for which a document counts as current, or"""
_REST_FACTOR: Final = 20
"""this multiple of the time that building it took, whichever is longer."""


class PublicationRoute:
    """Serves the document of a table that may be replaced at any time; `ttl` in seconds."""

    def __init__(self, table: Callable[[], HostTable], *, ttl: int) -> None:
        self._table = table
        self._ttl = ttl
        self._making = trio.Lock()
        self._made: tuple[HostTable, Document] | None = None
        self._rests_until = 0.0

    async def document(self) -> Document:
        """The document of the current table, or of one a moment ago."""
        async with self._making:
            table = self._table()
            if self._made is None or (self._made[0] is not table and trio.current_time() >= self._rests_until):
                begun = time.perf_counter()
                self._made = table, await in_slices(write_document(names_of(table), ttl=self._ttl))
                took = time.perf_counter() - begun
                self._rests_until = trio.current_time() + max(_REST, _REST_FACTOR * took)
            return self._made[1]

    def routes(self, *, waiting_for: Callable[[], Sequence[str]]) -> Mapping[str, Route]:
        """The route, for serve_admin; while the table waits for a source, it answers 503: the table is incomplete."""

        async def show(_: Mapping[str, str]) -> Answer:
            waiting = waiting_for()
            if waiting:
                return Answer(503, f"waiting for the first sync of: {', '.join(waiting)}\n".encode())
            document = await self.document()
            # Weak (RFC 9110 section 8.8.1): the replicas have the same names in different orders.
            return Answer(200, document.octets, _TYPE, {"ETag": f'W/"{document.tag}"'})

        return {PATH: show}
