"""The page of live queries: a form of filters and an empty table, which the script fills when the user starts it.

The law: pure; the page itself shows no query, and asks for none until a user presses Start. It needs `GET /tap`.
"""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from dnsproxy.tap.seen import Outcome
from sidecar.admin.page.document import section
from sidecar.admin.page.markup import html, joined

PATH: Final = "queries"
TITLE: Final = "Queries"
OFF: Final = "This server shows no queries: it was started with --tap off."
_COLUMNS: Final = {
    "time": "Time (UTC)",
    "client": "Client",
    "transport": "Transport",
    "qname": "Name",
    "qtype": "Type",
    "outcome": "Outcome",
    "rcode": "Code",
    "rule|upstream": "Rule or upstream",
    "seconds": "Duration",
}
"""The keys of a TapEvent, and headings; `|` stands between alternatives."""
_FIELDS: Final = (
    ("name", "Name", "app.example.org or *.example.org"),
    ("client", "Client", "192.0.2.10 or 2001:db8::/32"),
    ("type", "Type", "A, AAAA"),
)


def format_queries_page(*, shown: bool) -> Markup:
    """The content of the page; `shown` is False with --tap off."""
    if not shown:
        return section(TITLE, html('<p class="empty">{}</p>\n', OFF), key="queries")
    return joined((_script(), section(TITLE, joined((_form(), _noscript(), _table())), key="queries")))


def _form() -> Markup:
    fields = joined(
        html(
            '<label for="f-{0}">{1}</label><input id="f-{0}" name="{0}" placeholder="{2}" maxlength="255"'
            ' autocomplete="off" autocapitalize="none" spellcheck="false">',
            *field,
        )
        for field in _FIELDS
    )
    outcomes = joined(html('<option value="{0}">{0}</option>', one.value) for one in Outcome)
    return html(
        '<form class="stream" action="{}" method="get" data-from="tap" data-columns="{}">{}'
        '<label for="f-outcome">Outcome</label><select id="f-outcome" name="outcome">'
        '<option value="">all</option>{}</select><button>Start</button></form>\n'
        '<p><span id="stream-said" role="status">Paused.</span> <span id="stream-count"></span></p>\n',
        PATH,
        " ".join(_COLUMNS),
        fields,
        outcomes,
    )


def _noscript() -> Markup:
    # The script removes it; a `noscript` stays empty in a browser that is told later to run none.
    return html('<p id="no-script">{}</p>\n', "Without script: dnsproxy tap shows the same in a terminal.")


def _table() -> Markup:
    headings = joined(html('<th scope="col">{}</th>', heading) for heading in _COLUMNS.values())
    return html(
        '<div id="stream" class="scroll stream" tabindex="0" role="region" aria-label="{caption}"><table>'
        "<caption>{caption}</caption><thead><tr>{headings}</tr></thead><tbody></tbody></table></div>\n",
        caption="The last 200 queries, the newest first",
        headings=headings,
    )


def _script() -> Markup:
    return html('<script src="stream.js" defer></script>\n')
