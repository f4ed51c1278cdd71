from __future__ import annotations

import re

from docs.speed.page import format_page
from tests.docs.speed.runs import make_row, make_run


def test_a_page_needs_no_other_file_and_no_script() -> None:
    page = format_page(make_run())
    assert not re.search(r"<script|<img|<iframe|@import|url\(|https?:", page)
    assert re.findall(r'<link [^>]*href="([^"]*)"', page) == ["data:,"]


def test_a_page_has_rows_versions_machine_date_and_what_ran_beside() -> None:
    page = format_page(make_run())
    for thing in (
        "Answers a second",
        "4.6.1",
        "A processor",
        "Linux 6.1.0",
        "2026-01-02",
        "abc1234",
        "nothing",
        "8 GB",
    ):
        assert thing in page


def test_what_was_not_measured_is_on_the_page_with_its_reason() -> None:
    page = format_page(make_run())
    assert '<h2 id="fleet">A fleet</h2>' in page
    assert "Not measured: takes root" in page


def test_the_ratios_that_people_ask_for_are_at_the_top_and_lead_to_their_charts() -> None:
    page = format_page(make_run())
    assert '<a href="#dns-table-answers">Answers a second, 10,000 names</a>' in page
    assert '<li class="ahead"><b>1.20 \N{MULTIPLICATION SIGN}</b> <span>NSD</span></li>' in page


def test_every_link_within_the_page_leads_somewhere() -> None:
    page = format_page(make_run(make_row(), make_row(id="dns-other", bench="fleet")))
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(identifiers)
    assert len(identifiers) == len(set(identifiers))


def test_it_is_readable_in_light_and_dark_and_on_paper() -> None:
    page = format_page(make_run())
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
