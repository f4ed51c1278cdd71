"""The status page: routes, connections and backends, for a person with a browser.

The law: pure but for the clock of its caller; whatever was configured or resolved is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .8rem;border-bottom:1px solid #ccc}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}}"
)


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """One row of the page."""

    listen: str
    backend: str
    protocol: str
    addresses: Sequence[str]
    state: str


def render_page(routes: Sequence[RouteStatus], *, active: int, limit: int, total: int) -> str:
    """The page as HTML, without script and without anything from elsewhere."""
    rows = "".join(_row(route) for route in routes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Switchback proxy</title>'
        f"<style>{_STYLE}</style></head><body><h1>Switchback proxy</h1>"
        f"<p>{active} connections open of {limit} that may be, {total} since the start.</p>"
        "<table><thead><tr><th>Listens on</th><th>Backend</th><th>PROXY protocol</th><th>Addresses</th><th>State</th>"
        "</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        '<p><a href="/readyz">readyz</a> <a href="/metrics">metrics</a></p></body></html>'
    )


def _row(route: RouteStatus) -> str:
    cells = (route.listen, route.backend, route.protocol, ", ".join(route.addresses) or "none yet", route.state)
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
