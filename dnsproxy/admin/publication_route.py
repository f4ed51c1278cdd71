"""The route `/names.json.gz` of the admin port: the publication of the current table.

The law: a client that has the current document gets 304 and no body (table_document.py builds it).
Tested in publish/test_source.py, with a publisher that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dnsproxy.admin.publication import Document, rows_of, write_document
from dnsproxy.admin.table_document import TableDocument
from dnsproxy.answers.table import HostTable
from sidecar.admin.answers import Answer, Route

PATH: Final = "/names.json.gz"
_TYPE: Final = "application/gzip"
_REST: Final = 1.0
"""Seconds for which a document counts as current, at least."""


class PublicationRoute:
    """Serves the document of a table that may be replaced at any time; `ttl` returns seconds."""

    def __init__(self, table: Callable[[], HostTable], *, ttl: Callable[[], int]) -> None:
        self._made = TableDocument(table, lambda now: write_document(rows_of(now), ttl=ttl()), rest=_REST)

    async def document(self) -> Document:
        """The document of the current table, or of one a moment ago."""
        return await self._made.current()

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
