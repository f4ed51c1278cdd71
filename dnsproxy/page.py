"""The status page at `/` of the admin port: what a person wants to see first, in one small HTML page.

The law: pure; all text from outside is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dnsproxy.plan import Doubted, Lost
from sidecar.kubernetes.status import Status

_SHOWN = 200


def format_page(
    *,
    names: int,
    waiting_for: Iterable[str],
    sources: Iterable[Status],
    outstanding: int,
    lost: list[Lost],
    doubted: list[Doubted],
    notes: Iterable[str] = (),
) -> str:
    """The page."""
    rows = [
        ("Names in the table", str(names)),
        ("Waiting for a first sync", ", ".join(waiting_for) or "nothing"),
        *((source.kind, f"{source.describe()}, {source.objects} objects") for source in sources),
        ("Queries waiting for an upstream", str(outstanding)),
        *(("Note", note) for note in notes),
    ]
    table = "".join(f"<tr><th scope=row>{escape(name)}<td>{escape(value)}" for name, value in rows)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>dnsproxy</title>"
        "<meta name=color-scheme content='light dark'>"
        f"<h1>dnsproxy</h1><table>{table}</table>"
        f"{_format_claims('Left out', lost)}{_format_claims('Answered, but in doubt', doubted)}"
        "<p><a href=/table>table</a> <a href=/metrics>metrics</a> <a href=/readyz>readiness</a>\n"
    )


def _format_claims(title: str, rows: Sequence[Lost | Doubted]) -> str:
    cells = "".join(
        f"<tr><td>{escape(row.claim.hostname)}<td>{escape(str(row.claim.origin))}<td>{escape(row.reason)}"
        for row in rows[:_SHOWN]
    )
    return f"<h2>{title}: {len(rows)}</h2><table>{cells}</table>"
