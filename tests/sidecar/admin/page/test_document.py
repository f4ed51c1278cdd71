"""The frame and the parts of a page, charts among them."""

from __future__ import annotations

import re
from dataclasses import replace

from sidecar.admin.page.charts import format_charts, format_number
from sidecar.admin.page.document import (
    Fact,
    Frame,
    Level,
    as_levels,
    document,
    facts,
    notes,
    search_form,
    section,
    table,
    text,
    value,
)
from sidecar.admin.page.history import Chart, History, level
from sidecar.admin.page.markup import NOTHING, html
from sidecar.values.build import Build, own_build

EVIL = "<script>alert(1)</script>\"'&\u202e"
FRAME = Frame("dnsproxy", (("./", "Overview"), ("names", "Names")), Fact("State", EVIL, Level.BAD, "state"))


def test_a_page_has_landmarks_a_language_and_one_heading_of_the_first_rank() -> None:
    page = document(FRAME, title="Names", path="names", body=html("<p>x</p>"))
    for part in ('<html lang="en">', "<header>", '<nav aria-label="Pages">', "<main", "<footer>", 'role="status"'):
        assert page.count(part) == 1
    assert page.count("<h1>") == 1
    assert '<a href="names" aria-current="page">Names</a>' in page
    assert '<a href="./">Overview</a>' in page


def test_nothing_in_a_page_is_absolute_or_inline() -> None:
    """It may stand behind the API server's proxy, and its policy allows neither."""
    page = document(FRAME, title="Names", path="names", body=NOTHING)
    assert all(not one.startswith(("/", "http")) for one in re.findall(r'(?:href|src|action)="([^"]*)"', page))
    assert not re.search(r"<style|<script(?! src)| style=| on[a-z]+=", page)


def test_every_part_escapes_what_it_is_given() -> None:
    parts = [
        document(FRAME, title=EVIL, path=EVIL, body=NOTHING),
        section(EVIL, NOTHING, key="x"),
        facts([Fact(EVIL, EVIL, Level.OK, EVIL, EVIL)]),
        table(EVIL, [EVIL], [[text(EVIL), text(EVIL, Level.WARN)]], empty=""),
        table("", [], [], empty=EVIL),
        notes([EVIL]),
        search_form(EVIL, label=EVIL, field=EVIL, asked=EVIL, longest=9, button=EVIL),
    ]
    for part in parts:
        assert "<script>alert" not in part
        assert "\u202e" not in part


def test_the_foot_states_the_build_that_runs() -> None:
    page = document(replace(FRAME, build=Build("1.2.3", "0123456789abcdef", EVIL)), title="x", path="./", body=NOTHING)
    assert "Switchback 1.2.3, revision 0123456789ab</p>" in page.partition("<footer>")[2]
    assert str(own_build()) in document(FRAME, title="x", path="./", body=NOTHING).partition("<footer>")[2]


def test_a_level_is_said_beside_the_words_and_what_is_live_has_its_name() -> None:
    assert value(Fact("x", "down", Level.BAD, "x-1")) == (
        '<span class="value" data-level="bad" data-live="x-1">down</span>'
    )
    assert "data-live" not in value(Fact("x", "down"))


def test_what_changes_is_told_again_by_its_name() -> None:
    rows = [Fact("a", "1", Level.WARN, "a"), Fact("b", "never told"), Fact("c", "x" * 1_000, live="c")]
    told = as_levels(rows)
    assert (told["a"], set(told)) == (("1", "warn"), {"a", "c"})
    assert told["c"][0] in value(rows[2])


def test_no_notes_take_no_room() -> None:
    assert notes([]) == ""


def test_a_chart_says_every_number_in_words() -> None:
    history = History([Chart("c", "Queries", "a second", (level("one", "of one kind", "one"),))])
    assert ">-</td>" in format_charts(history)
    for second in range(4):
        history.take(second, {"one": second * 1_000})
    page = format_charts(history)
    for number in ('data-now="one">3,000<', 'data-mean="one">2,000<', 'data-most="one">3,000<'):
        assert number in page
    assert 'data-samples="1000;2000;3000" data-number="3"' in page


def test_numbers_have_three_digits_that_count() -> None:
    given = (0, 0.0123, 1.234, 12.34, 123.4, 1234567.8, -5.5)
    assert [format_number(one) for one in given] == ["0", "0.012", "1.23", "12.3", "123", "1,234,568", "-5.50"]
