"""The status page: mappings and what is wrong, for a person with a browser.

The law: pure; whatever comes from the cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from wholeip.status import Document, ShownMapping, describe_opened

SHOWN = 1_000
"""Rows of a table; `wholeip status` has all."""
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #ccc}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}}"
)


def render_page(document: Document, *, repaired: int) -> str:
    """The page as HTML, without script and without anything from elsewhere."""
    headings = ("Service", "Address", "Pod", "Lets in", "Egress", "Runs")
    reports = [(report.service, report.reason, report.detail) for report in document.reports]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Switchback wholeip</title>'
        f"<style>{_STYLE}</style></head><body><h1>Switchback wholeip</h1>"
        f"<p>{'Ready' if document.ready else 'Not ready'}: {escape(document.state)}.</p>"
        f"<p>Node {escape(document.node or 'not named')}. Changes of others undone: {repaired}.</p>"
        f"{_table('Mappings', headings, map(_row, document.mappings))}"
        f"{_table('Reports', ('Service', 'Reason', 'Detail'), reports)}"
        '<p><a href="/readyz">readyz</a> <a href="/metrics">metrics</a> <a href="/mappings">mappings</a></p>'
        "</body></html>"
    )


def _row(mapping: ShownMapping) -> Sequence[str]:
    return (
        mapping.service,
        mapping.address,
        mapping.endpoint,
        describe_opened(mapping.opened, icmp=mapping.icmp),
        "yes" if mapping.egress else "no",
        "here" if mapping.here else "elsewhere",
    )


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:SHOWN])
    more = f"<p>{len(rows) - SHOWN} more.</p>" if len(rows) > SHOWN else ""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    return f"<h2>{title}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
