"""The page of a long list: one window of rows at a time, with a search on the server.

The law: pure; a page is rendered in steps, however long the list is, and each row shows the state when it is rendered.
Tested in test_lists.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from dnsproxy.admin.pages.overview import LONGEST_SEARCH
from dnsproxy.hostnames.registry import Registry
from sidecar.admin.page.document import search_form, table_row, whole_table
from sidecar.admin.page.index import Index, Rows
from sidecar.admin.page.markup import NOTHING, html, joined
from sidecar.admin.page.window import Place, Window, Words

SIZE: Final = 50
LONGEST_PLACE: Final = 1_000

Steps = Generator[None, None, Markup]


@dataclass(frozen=True, slots=True)
class Search:
    """The search in a request."""

    words: str
    place: Place


@dataclass(frozen=True, slots=True)
class List:
    """One of the lists."""

    path: str
    title: str
    headings: Sequence[str]
    nothing: str
    """The text for an empty list."""
    live: Callable[[Registry], Iterable[Any]]
    """The places that have rows; a change during the iteration raises RuntimeError."""
    copy: Callable[[Registry], Collection[Any]]
    """A copy of them, to iterate while they change: 100,000 take some milliseconds."""
    keys: Callable[[Registry, Any], Iterable[str]]
    """The keys of the rows of one place, by which rows are sorted; unique."""
    version: Callable[[Registry], int]
    """A number that changes whenever the rows or their searchable texts change."""
    changes: Callable[[Registry, int], Mapping[str, bool] | None]
    """The keys that have changed since a version, and whether each exists now; None if that is unknown."""
    texts: Callable[[Registry, str, bool], Iterable[str]]
    """The texts of a row that are searched, in lower case. True: with whole origins, such as `ingress shop/web`."""
    cells: Callable[[Registry, str], Sequence[Markup]]
    """The row of a key; empty if it no longer exists."""


def parse_search(query: Mapping[str, str]) -> Search | None:
    """The search in the fields of a request; None if it is longer than anything it could find."""
    words, after, before = (query.get(name, "") for name in ("q", "after", "before"))
    if len(words) > LONGEST_SEARCH or max(len(after), len(before)) > LONGEST_PLACE:
        return None
    return Search(" ".join(words.split()), Place("" if before else after, before))


def index_of(registry: Registry, which: List) -> Index:
    """The search index of a list."""

    def keys(rows: Iterable[Any]) -> Iterable[str]:
        return (key for row in rows for key in which.keys(registry, row))

    return Index(
        Rows(
            live=lambda: keys(which.live(registry)),
            copy=lambda: keys(which.copy(registry)),
            texts=lambda key, whole: which.texts(registry, key, whole),
        )
    )


def format_list(registry: Registry, which: List, search: Search, index: Index) -> Steps:
    """The content of the page; `index` is that of the list."""
    words = search.words.lower()
    window = yield from index.find(Words(words, whole=" " in words or "/" in words), search.place, size=SIZE)
    shown: list[Markup] = []
    for key in window.keys:
        cells = which.cells(registry, key)
        shown += [table_row(cells)] if cells else []
        yield
    return _format(which, search, window, joined(shown))


def _format(which: List, search: Search, window: Window, rows: Markup) -> Markup:
    form = search_form(
        which.path,
        label="Find",
        field="q",
        asked=search.words,
        longest=LONGEST_SEARCH,
        button="Find",
    )
    nothing = html("Nothing contains <q>{}</q>.", search.words) if search.words else html("{}", which.nothing)
    found = (
        joined((whole_table(_count(which, search, window), which.headings, rows), _turning(which, search, window)))
        if rows
        else html('<p class="empty">{}</p>', nothing)
    )
    return joined((form, html('<div id="results">{}</div>', found)))


def _count(which: List, search: Search, window: Window) -> str:
    last = window.earlier + len(window.keys)
    found = f"{which.title}, {window.earlier + 1:,} to {last:,} of {window.total:,}"
    return f"{found} with “{search.words}”" if search.words else found


def _turning(which: List, search: Search, window: Window) -> Markup:
    """Links to the pages before and after."""
    links = [
        html('<li><a rel="{}" href="{}">{}</a></li>', rel, _address(which, search, place), name)
        for rel, place, name, there in (
            ("start", {}, "First", window.earlier),
            ("prev", {"before": window.keys[0]}, "Previous", window.earlier),
            ("next", {"after": window.keys[-1]}, "Next", window.later),
        )
        if there
    ]
    return (
        html('<nav class="turning" aria-label="Pages of the list"><ul>{}</ul></nav>', joined(links))
        if links
        else NOTHING
    )


def _address(which: List, search: Search, place: Mapping[str, str]) -> str:
    fields = {**({"q": search.words} if search.words else {}), **place}
    return f"{which.path}?{urlencode(fields)}" if fields else which.path
