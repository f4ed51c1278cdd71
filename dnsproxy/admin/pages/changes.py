"""The page of the table's changes: the last ones, newest first, with time, name, object, and what changed.

The law: pure; it has the content of `/changes`, made in pieces that each take less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup

from dnsproxy.hostnames.table_changes import MOST_CHANGES, Answer, TableChange
from sidecar.admin.page.document import section, table_row, text, whole_table
from sidecar.admin.page.markup import html, joined

PATH: Final = "history"
TITLE: Final = "Changes"
_PIECE: Final = 20
"""Rows made in one step."""
_HEADINGS: Final = ("Name", "Time (UTC)", "Change", "Object", "Before", "After")


def format_changes_page(changes: Sequence[TableChange]) -> Generator[None, None, Markup]:
    """The content of the page; `changes` are the newest first."""
    rows: list[Markup] = []
    for begin in range(0, len(changes), _PIECE):
        rows += [table_row(_cells(change)) for change in changes[begin : begin + _PIECE]]
        yield
    if not rows:
        body = html('<p class="empty">{}</p>\n', "No name was added, changed or removed since the start.")
    else:
        body = whole_table(f"The last changes of the table, up to {MOST_CHANGES}", _HEADINGS, joined(rows))
    return section(TITLE, body, key="changes")


def _cells(change: TableChange) -> list[Markup]:
    at = datetime.fromtimestamp(change.time, UTC)
    return [
        html("{}", change.hostname),
        html('<time datetime="{}">{}</time>', at.isoformat(timespec="seconds"), f"{at:%Y-%m-%d %H:%M:%S}"),
        text(change.what),
        text(str(change.origin)),
        text(_shown(change.before)),
        text(_shown(change.after)),
    ]


def _shown(answer: Answer | None) -> str:
    if answer is None:
        return "-"
    shown = ", ".join(answer.addresses)
    return f"{shown} ({answer.class_name})" if answer.class_name else shown
