"""The routes of a DNS server's admin port: pages for users, and `/table` and `/explain?name=NAME` as JSON.

The law: pure; every request causes bounded work, or is refused before any work is done. A large answer is produced in
pieces that each take less than a millisecond, so that no query waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from dnsproxy.admin.explain import LONGEST, find_explanation, format_explanation_json
from dnsproxy.admin.listing import format_listing
from dnsproxy.admin.pages import changes, queries
from dnsproxy.admin.pages.explain import format_explanation_page, format_question
from dnsproxy.admin.pages.list_page import List, format_list, index_of, parse_search
from dnsproxy.admin.pages.lists import LISTS
from dnsproxy.admin.pages.overview import Overview, format_overview, overview_facts
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.table_changes import TableChange
from dnsproxy.tap.recent import RecentClients
from sidecar.admin.answers import JSON, Answer, Route, page_answer
from sidecar.admin.page.document import Frame, document
from sidecar.admin.page.live import live_route
from sidecar.admin.page.shared import Shared

_PAGES: Final = (
    ("./", "Overview"),
    *((which.path, which.title) for which in LISTS),
    ("why", "Explain"),
    (changes.PATH, changes.TITLE),
    (queries.PATH, queries.TITLE),
)
_RAW: Final = (("metrics", "metrics"), ("readyz", "readiness"), ("table", "table as JSON"))
_TOO_LONG: Final = Answer(400, b"The search is too long to match anything.\n")


class Pages:
    """The pages over one registry. `look` returns the current overview; `notes` the notes on the data.

    `recent`: who asked for which name, if that is recorded; `last_changes`: those of the table, the newest first.
    `tapped`: whether queries are shown.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        ttl: int,
        look: Callable[[], Overview],
        notes: Callable[[], Sequence[str]],
        recent: RecentClients | None = None,
        last_changes: Callable[[], Sequence[TableChange]] = list,
        tapped: bool = False,
    ) -> None:
        self._tapped = tapped
        self._last_changes = last_changes
        self._registry = registry
        self._ttl = ttl
        self._look = look
        self._notes = notes
        self._recent = recent
        self._indexes = {
            which.path: Shared(
                partial(index_of, registry, which),
                version=partial(which.version, registry),
                changes=partial(which.changes, registry),
            )
            for which in LISTS
        }

    def routes(self) -> Mapping[str, Route]:
        """The routes for serve_admin, except `/`."""
        lists = {f"/{which.path}": self._list_route(which) for which in LISTS}
        return {
            **lists,
            "/why": self._show_explanation,
            f"/{changes.PATH}": self._show_changes,
            f"/{queries.PATH}": self._show_queries,
            **live_route(self._look().history, lambda: overview_facts(self._look())),
        }

    def tidy(self) -> None:
        """Release unused search indexes; to be called regularly."""
        for index in self._indexes.values():
            index.tidy()

    def overview(self) -> str:
        """The page at `/`."""
        return self._document("Overview", "./", format_overview(self._look()))

    def _list_route(self, which: List) -> Route:
        def show(query: Mapping[str, str]) -> Answer:
            search = parse_search(query)
            if search is None:
                return _TOO_LONG

            def steps() -> Generator[None, None, str]:
                body = yield from format_list(self._registry, which, search, self._indexes[which.path].take())
                return self._document(which.title, which.path, body)

            return page_answer(steps())

        return show

    def _show_explanation(self, query: Mapping[str, str]) -> Answer:
        name = query.get("name", "").strip()
        if len(name) > LONGEST:
            return _TOO_LONG
        if not name:
            return page_answer(self._document("Explain", "why", format_question("")))

        def steps() -> Generator[None, None, str]:
            ttl = self._registry.ttl or self._ttl
            explanation = yield from find_explanation(
                self._registry, name, ttl=ttl, notes=self._notes(), recent=self._recent
            )
            return self._document("Explain", "why", format_explanation_page(explanation))

        return page_answer(steps())

    def _show_changes(self, _: Mapping[str, str]) -> Answer:
        def steps() -> Generator[None, None, str]:
            body = yield from changes.format_changes_page(self._last_changes())
            return self._document(changes.TITLE, changes.PATH, body)

        return page_answer(steps())

    def _show_queries(self, _: Mapping[str, str]) -> Answer:
        return page_answer(self._document(queries.TITLE, queries.PATH, queries.format_queries_page(shown=self._tapped)))

    def _document(self, title: str, path: str, body: Markup) -> str:
        frame = Frame("dnsproxy", _PAGES, self._look().state, _RAW)
        return document(frame, title=title, path=path, body=body)


def table_routes(
    registry: Registry, *, ttl: int, notes: Callable[[], Sequence[str]], recent: RecentClients | None = None
) -> Mapping[str, Route]:
    """The routes with JSON, for serve_admin. `ttl` if no primary has another; `notes` returns the current notes."""

    def show_table(_: Mapping[str, str]) -> Answer:
        return Answer(200, format_listing(registry, ttl=registry.ttl or ttl, notes=notes()), JSON)

    def show_explanation(query: Mapping[str, str]) -> Answer:
        name = query.get("name", "")
        if not name.strip():
            return Answer(400, b"The name is missing: /explain?name=app.example.org\n")
        if len(name) > LONGEST:
            return Answer(400, f"A name has at most 255 octets; {len(name)} characters are too many.\n".encode())
        ttl_now = registry.ttl or ttl
        return Answer(200, format_explanation_json(registry, name, ttl=ttl_now, notes=notes(), recent=recent), JSON)

    return {"/table": show_table, "/explain": show_explanation}
