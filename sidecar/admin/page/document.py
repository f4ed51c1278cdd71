"""The parts of every page of the admin port, and the frame around them.

The law: pure; a page is complete and usable without script, style or mouse. A value that the script updates has a
`data-live` name, under which live.py sends its new text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from markupsafe import Markup

from sidecar.admin.page.markup import NOTHING, html, joined, shortened
from sidecar.values.build import Build, own_build


class Level(StrEnum):
    """How good or bad a value is; shown by a sign and a colour beside the text."""

    PLAIN = ""
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its name."""

    name: str
    text: str
    level: Level = Level.PLAIN
    live: str = ""
    """Its name for updates; empty for a value that does not change."""
    to: str = ""
    """The page with more details."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around the content of a page."""

    program: str
    pages: Sequence[tuple[str, str]]
    """Relative paths, and titles."""
    state: Fact
    raw: Sequence[tuple[str, str]] = (("metrics", "metrics"), ("readyz", "readiness"))
    """Resources for programs, linked in the footer."""
    build: Build = field(default_factory=own_build)
    """What runs, stated in the footer."""


_DOCUMENT: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · {program}</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="style.css">
<script src="script.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="./"><img src="icon.svg" alt="" width="28" height="28">{program}</a>
<nav aria-label="Pages"><ul>{pages}</ul></nav>
<p class="state">{state}</p>
</header>
<main id="content" tabindex="-1">
<h1>{title}</h1>
{body}
</main>
<footer>
<p>{raw}</p>
<p>Switchback {build}</p>
<p id="said" role="status"></p>
</footer>
</body>
</html>
"""


def document(frame: Frame, *, title: str, path: str, body: Markup) -> str:
    """A whole page; `path` is one of `frame.pages`, or another path."""
    here = Markup(' aria-current="page"')
    pages = joined(
        html('<li><a href="{}"{}>{}</a></li>', to, here if to == path else NOTHING, name) for to, name in frame.pages
    )
    raw = joined((html('<a href="{}">{}</a>', to, name) for to, name in frame.raw), " ")
    return html(
        _DOCUMENT,
        title=title,
        program=frame.program,
        pages=pages,
        state=value(frame.state),
        body=body,
        raw=raw,
        build=frame.build,
    )


def section(title: str, body: Markup, *, key: str) -> Markup:
    """A part of a page with a heading; `key` is its id."""
    return html(
        '<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>{body}</section>\n',
        key=key,
        title=title,
        body=body,
    )


def value(fact: Fact) -> Markup:
    """A value with its level; the script can update it."""
    return html(
        '<span class="value" data-level="{}"{}>{}</span>',
        fact.level,
        html(' data-live="{}"', fact.live) if fact.live else NOTHING,
        shortened(fact.text),
    )


def facts(rows: Iterable[Fact], *, kind: str = "facts") -> Markup:
    """A list of names and values; `kind` is `facts` for lines of text, `tiles` for large numbers."""
    items = joined(
        html(
            "<div><dt>{}</dt><dd>{}</dd></div>",
            html('<a href="{}">{}</a>', row.to, row.name) if row.to else row.name,
            value(row),
        )
        for row in rows
    )
    return html('<dl class="{}">{}</dl>\n', kind, items)


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Markup]], *, empty: str) -> Markup:
    """A table whose first column names the row; the sentence `empty` without rows."""
    body = joined(table_row(row) for row in rows)
    return whole_table(caption, headings, body) if body else html('<p class="empty">{}</p>\n', empty)


def table_row(cells: Sequence[Markup]) -> Markup:
    """One row."""
    return html('<tr><th scope="row">{}</th>{}</tr>\n', cells[0], joined(html("<td>{}</td>", one) for one in cells[1:]))


def whole_table(caption: str, headings: Sequence[str], body: Markup) -> Markup:
    """A table around rows."""
    # Wide tables scroll, which the keyboard can do only if they can have the focus.
    return html(
        '<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table><caption>{caption}</caption>'
        "<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table></div>\n",
        caption=caption,
        headings=joined(html('<th scope="col">{}</th>', heading) for heading in headings),
        body=body,
    )


def text(words: str, level: Level = Level.PLAIN) -> Markup:
    """A cell's text."""
    return value(Fact("", words, level)) if level else html("{}", shortened(words))


def notes(lines: Sequence[str]) -> Markup:
    """What one should know before one reads on; nothing where there is nothing."""
    if not lines:
        return NOTHING
    return html('<ul class="notes">{}</ul>\n', joined(html("<li>{}</li>", shortened(line)) for line in lines))


def search_form(to: str, *, label: str, field: str, asked: str, longest: int, button: str) -> Markup:
    """A form of one text field."""
    return html(
        '<form class="search" role="search" action="{to}" method="get"><label for="{field}">{label}</label>'
        '<input type="search" id="{field}" name="{field}" value="{asked}" maxlength="{longest}" autocomplete="off"'
        ' autocapitalize="none" spellcheck="false"><button>{button}</button></form>\n',
        to=to,
        label=label,
        field=field,
        asked=asked,
        longest=longest,
        button=button,
    )


def as_levels(rows: Iterable[Fact]) -> Mapping[str, tuple[str, str]]:
    """The values that the script updates, by name: text and level."""
    return {row.live: (shortened(row.text), str(row.level)) for row in rows if row.live}
