"""A long list on a page: a part of it at a time, searched here.

The law: pure; a list is walked through in steps, however long it is, and shows what is true when its page is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from dnsproxy.pages.overview import LONGEST_SEARCH
from dnsproxy.registry import Registry
from sidecar.page.document import search_form, table_row, whole_table
from sidecar.page.markup import NOTHING, html, joined
from sidecar.page.shared import Copy
from sidecar.page.window import Place, Window, find_window

SIZE: Final = 50
LONGEST_PLACE: Final = 1_000
_TRIES: Final = 3
"""Walks through rows that may change, before a copy of them is made."""

Steps = Generator[None, None, Markup]


@dataclass(frozen=True, slots=True)
class Search:
    """What is asked of a list."""

    words: str
    place: Place


@dataclass(frozen=True, slots=True)
class List:
    """One of the lists."""

    path: str
    title: str
    headings: Sequence[str]
    nothing: str
    """What is said where there are no rows at all."""
    live: Callable[[Registry], Iterable[Any]]
    """What has rows; a change while it is walked through is a RuntimeError."""
    copy: Callable[[Registry], Collection[Any]]
    """The same, made at once, to walk through while it changes: 100,000 take some milliseconds."""
    keys: Callable[[Registry, Any], Iterable[str]]
    """What the rows of one of them are sorted by, and no other has."""
    matches: Callable[[Registry, str, str], bool]
    """Whether the row of a key has the words of a search, in lower case."""
    cells: Callable[[Registry, str], Sequence[Markup]]
    """The row of a key; none where it has gone meanwhile."""


def parse_search(query: Mapping[str, str]) -> Search | None:
    """The search in the fields of a request, or None where it is longer than any that finds something."""
    words, after, before = (query.get(name, "") for name in ("q", "after", "before"))
    if len(words) > LONGEST_SEARCH or max(len(after), len(before)) > LONGEST_PLACE:
        return None
    return Search(" ".join(words.split()), Place("" if before else after, before))


def format_list(registry: Registry, which: List, search: Search, copies: Callable[[], Copy[Collection[Any]]]) -> Steps:
    """The content of the page; `copies` is asked for one where the rows change too often to be walked through."""
    window = yield from _find(registry, which, search, copies)
    shown: list[Markup] = []
    for key, _ in window.rows:
        cells = which.cells(registry, key)
        shown += [table_row(cells)] if cells else []
        yield
    return _format(which, search, window, joined(shown))


def _find(
    registry: Registry, which: List, search: Search, copies: Callable[[], Copy[Collection[Any]]]
) -> Generator[None, None, Window[None]]:
    words = search.words.lower()

    def walk(rows: Iterable[Any]) -> Generator[None, None, Window[None]]:
        return find_window(
            ((key, None) for row in rows for key in which.keys(registry, row)),
            matches=lambda key, _: not words or which.matches(registry, key, words),
            place=search.place,
            size=SIZE,
        )

    for _ in range(_TRIES):
        try:
            return (yield from walk(which.live(registry)))
        except RuntimeError:
            # The rows have changed meanwhile, in a table that mostly stands still: once more, from the start.
            yield
    copy = copies()
    return (yield from walk(copy.rows))


def _format(which: List, search: Search, window: Window[None], rows: Markup) -> Markup:
    form = search_form(
        which.path,
        label="Find",
        field="q",
        asked=search.words,
        longest=LONGEST_SEARCH,
        button="Find",
    )
    nothing = html("Nothing has <q>{}</q> in it.", search.words) if search.words else html("{}", which.nothing)
    found = (
        joined((whole_table(_count(which, search, window), which.headings, rows), _turning(which, search, window)))
        if rows
        else html('<p class="empty">{}</p>', nothing)
    )
    return joined((form, html('<div id="results">{}</div>', found)))


def _count(which: List, search: Search, window: Window[None]) -> str:
    last = window.earlier + len(window.rows)
    found = f"{which.title}, {window.earlier + 1:,} to {last:,} of {window.total:,}"
    return f"{found} with “{search.words}”" if search.words else found


def _turning(which: List, search: Search, window: Window[None]) -> Markup:
    """Links to the pages before and after."""
    links = [
        html('<li><a rel="{}" href="{}">{}</a></li>', rel, _address(which, search, place), name)
        for rel, place, name, there in (
            ("start", {}, "First", window.earlier),
            ("prev", {"before": window.rows[0][0]}, "Previous", window.earlier),
            ("next", {"after": window.rows[-1][0]}, "Next", window.later),
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
