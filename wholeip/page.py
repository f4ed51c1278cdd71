"""The status page: mappings and what is wrong, for a person with a browser.

The law: pure; whatever comes from the cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sidecar.page.document import Fact, Frame, Level, document, facts, section, table, text
from sidecar.page.markup import NOTHING, html, joined
from wholeip.status import Document, ShownMapping, ShownReport, describe_opened

SHOWN = 1_000
"""Rows of a table; `wholeip status` has all."""


def render_page(shown: Document, *, repaired: int) -> str:
    """The page as HTML."""
    state = Fact("State", shown.state, Level.OK if shown.ready else Level.BAD)
    about = [
        Fact("Ready" if shown.ready else "Not ready", shown.state, state.level),
        Fact("Node", shown.node or "not named"),
        Fact("Changes of others undone", f"{repaired:,}", Level.WARN if repaired else Level.PLAIN),
    ]
    body = joined(
        (
            section("This node", facts(about), key="node"),
            section("Mappings", joined((_mappings(shown.mappings), _more(len(shown.mappings)))), key="mappings"),
            section("Reports", joined((_reports(shown.reports), _more(len(shown.reports)))), key="reports"),
        )
    )
    raw = (("metrics", "metrics"), ("readyz", "readiness"), ("mappings", "mappings as JSON"))
    return document(Frame("wholeip", (("./", "Overview"),), state, raw), title="Whole addresses", path="./", body=body)


def _mappings(mappings: Sequence[ShownMapping]) -> Markup:
    headings = ("Service", "Address", "Pod", "Lets in", "Egress", "Runs")
    return table("Addresses and the pods that have them", headings, map(_row, mappings[:SHOWN]), empty="None.")


def _reports(reports: Sequence[ShownReport]) -> Markup:
    rows = [[text(one.service), text(one.reason), text(one.detail)] for one in reports[:SHOWN]]
    return table("What is left out", ("Service", "Reason", "Detail"), rows, empty="Nothing is wrong.")


def _row(mapping: ShownMapping) -> Sequence[Markup]:
    return [
        text(one)
        for one in (
            mapping.service,
            mapping.address,
            mapping.endpoint,
            describe_opened(mapping.opened, icmp=mapping.icmp),
            "yes" if mapping.egress else "no",
            "here" if mapping.here else "elsewhere",
        )
    ]


def _more(count: int) -> Markup:
    return html("<p>{} more.</p>", count - SHOWN) if count > SHOWN else NOTHING
