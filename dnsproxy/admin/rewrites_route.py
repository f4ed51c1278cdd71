"""The route `/rewrites` of the admin port: the names that this server answers with Services.

The law: a document is made on request if the table has changed (table_document.py). It never shows a name whose Service
has no ready endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final

from dnsproxy.admin.rewritable_names import RewritableNames, find_rewritable
from dnsproxy.admin.rewrites_document import PATH, Name, RewritesDocument, format_rewrites_document
from dnsproxy.admin.table_document import TableDocument
from dnsproxy.answers.table import HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.ranking import age_of
from dnsproxy.hostnames.registry import Registry
from sidecar.admin.answers import JSON, Answer, Route

_REST: Final = 0.2
"""Seconds for which a document counts as current, at least: an installer asks every 0.3 seconds."""


class RewritesRoute:
    """Serves the names of a table that may be replaced at any time; the registry knows since when each is claimed."""

    def __init__(
        self, table: Callable[[], HostTable], registry: Registry, *, waiting_for: Callable[[], Sequence[str]]
    ) -> None:
        self._registry = registry
        self._waiting_for = waiting_for
        self._found = TableDocument(table, self._make, rest=_REST)
        self._made: tuple[RewritableNames, tuple[str, ...], bytes, str] | None = None

    def routes(self) -> Mapping[str, Route]:
        """The route, for serve_admin."""

        async def show(_: Mapping[str, str]) -> Answer:
            # Read first: a source that reports while the document is made is complete in the next one only.
            waiting_for = tuple(self._waiting_for())
            found = await self._found.current(complete=not waiting_for)
            if self._made is None or self._made[0] is not found or self._made[1] != waiting_for:
                self._made = found, waiting_for, *_formatted(found, waiting_for)
            return Answer(200, self._made[2], JSON, {"ETag": f'"{self._made[3]}"'})

        return {PATH: show}

    def _make(self, table: HostTable) -> Generator[None, None, RewritableNames]:
        return find_rewritable(table, self._age_of)

    def _age_of(self, hostname: str, reach: Reach) -> str:
        claims = self._registry.store.claims_for(hostname)
        if len(claims) == 1:
            # Nearly every name, which spares its verdict.
            return age_of(claims[0])
        owner = self._registry.verdict(hostname, reach).owner
        return age_of(owner) if owner is not None else ""


def _formatted(found: RewritableNames, waiting_for: tuple[str, ...]) -> tuple[bytes, str]:
    return format_rewrites_document(
        RewritesDocument(
            names=tuple(Name(hostname, Reach(reach), service) for _, hostname, reach, service in found.rows),
            exempt=tuple(Name(hostname, reach) for hostname, reach in found.exempt),
            plain=found.plain,
            left_out=found.left_out,
            waiting_for=waiting_for,
        )
    )
