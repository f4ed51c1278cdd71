"""A document of the current table, for the routes of the admin port.

The law: it is built on request if the table has changed, in slices, and once for all concurrent requests. If the table
keeps changing, it is built only now and then; but a complete table never has the document of an incomplete one. Tested
in publish/test_source.py and test_rewrites_route.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Final, Generic, TypeVar

import trio

from dnsproxy.answers.table import HostTable
from sidecar.loop.slices import in_slices

Document = TypeVar("Document")

_REST_FACTOR: Final = 20
"""A document counts as current for this multiple of the time that building it took."""


class TableDocument(Generic[Document]):
    """Makes the document of a table that may be replaced at any time.

    `make` yields between its steps (sidecar/loop/slices.py); `rest`: seconds for which a document counts as current, at
    least.
    """

    def __init__(
        self,
        table: Callable[[], HostTable],
        make: Callable[[HostTable], Generator[None, None, Document]],
        *,
        rest: float,
    ) -> None:
        self._table = table
        self._make = make
        self._rest = rest
        self._making = trio.Lock()
        self._made: tuple[HostTable, Document] | None = None
        self._is_complete = False
        self._rests_until = 0.0

    async def current(self, *, complete: bool = True) -> Document:
        """The document of the current table, or of one a moment ago; `complete`: whether that table is."""
        async with self._making:
            table = self._table()
            rests = trio.current_time() < self._rests_until and (self._is_complete or not complete)
            if self._made is None or (self._made[0] is not table and not rests):
                begun = time.perf_counter()
                self._is_complete = complete
                self._made = table, await in_slices(self._make(table))
                took = time.perf_counter() - begun
                self._rests_until = trio.current_time() + max(self._rest, _REST_FACTOR * took)
            return self._made[1]
