"""The hints in the status, as rows and as JSON."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard
from dnsproxy.install.report.hint_rows import Hints, format_hints, rows_of_hints
from dnsproxy.install.report.status_document import format_document
from dnsproxy.install.report.status_report import format_rows
from dnsproxy.install.report.verdict import StatusReport, judge
from tests.dnsproxy.install.report.test_verdict import YES, report, with_stanza

ROUTER = UnknownAddress(address="198.51.100.1", hostnames=12, asked=14, examples=("app.example.org",))
WIDE = WideWildcard(hostname="*.example.org", origin="Ingress shop/web", verified=True)


def with_hints(hints: Hints) -> StatusReport:
    there = report(with_stanza(), (YES,), (YES,))
    return StatusReport(there.found, there.choice, there.traces, there.loaded, there.answers, hints=hints)


def test_each_hint_has_a_row_with_what_to_do() -> None:
    address, wildcard = rows_of_hints(Hints((ROUTER,), (WIDE,)))
    assert (address.what, address.state) == ("address", "?")
    assert address.detail.startswith("12 of 14 asked hosts lead to 198.51.100.1, which no status names; if it is your ")
    assert "--trust 198.51.100.1" in address.detail
    assert (wildcard.what, wildcard.state, wildcard.detail) == ("wildcard", "", WIDE.sentence)


def test_without_a_hint_there_is_no_row_and_an_unread_one_is_no_absence() -> None:
    assert list(rows_of_hints(Hints())) == []
    (row,) = rows_of_hints(Hints(unknown="pod a: 403"))
    assert (row.state, row.detail[-10:]) == ("?", "pod a: 403")


@pytest.mark.parametrize("hints", [Hints((ROUTER,), (WIDE,)), Hints(unknown="no right")])
def test_the_verdict_does_not_depend_on_them(hints: Hints) -> None:
    assert judge(with_hints(hints)) == judge(with_hints(Hints()))


def test_the_table_and_the_document_show_the_same_and_no_control_reaches_a_terminal() -> None:
    hints = Hints((ROUTER,), (replace(WIDE, origin="Ingress a/\x1b[31mb\nc"),))
    shown = with_hints(hints)
    rows = [row.detail for row in format_rows(shown)]
    assert any("12 of 14 asked hosts" in detail for detail in rows)
    assert not any("\x1b" in detail or "\n" in detail for detail in rows)
    document = format_document(shown, judge(shown))["hints"]
    assert document == format_hints(hints)
    assert document["unknown_addresses"][0]["hostnames"] == 12
    assert document["wide"] == ({"hostname": "*.example.org", "origin": "Ingress a/\x1b[31mb\nc", "verified": True},)
    assert document["unknown"] == ""
