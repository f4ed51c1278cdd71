from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from docs.speed.chart import format_chart, make_identifier
from docs.speed.run import Figure
from tests.docs.speed.runs import make_row

EVIL = '<script>"&'


def widths(chart: str) -> list[float]:
    return [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)%"', chart)]


def test_bars_begin_at_zero_and_are_as_long_as_their_figures() -> None:
    chart = format_chart(make_row())
    assert set(re.findall(r'<rect [^>]* x="(\d+)"', chart)) == {"0"}
    ours, nsd = widths(chart)
    assert ours / nsd == pytest.approx(1.2, rel=1e-3)


def test_a_chart_says_everything_in_words_and_in_a_table() -> None:
    chart = format_chart(make_row())
    assert "<title" in chart
    assert "Switchback 120,000 1/s; NSD 100,000 1/s</desc>" in chart
    assert (
        '<tr><th scope="row">NSD</th><td>100,000</td><td>90,000</td><td>101,000</td><td>3</td><td>1.20</td></tr>'
        in chart
    )
    assert "longer is better" in chart


def test_a_program_without_a_figure_has_its_reason_in_the_table() -> None:
    assert "not measured: it answers &lt;REFUSED&gt;" in format_chart(make_row())


def test_without_any_figure_the_reasons_take_the_place_of_the_bars() -> None:
    chart = format_chart(make_row(figures={}))
    assert "<svg" not in chart
    assert "Unbound: not measured" in chart


def test_a_goal_is_a_line_within_the_axis() -> None:
    chart = format_chart(make_row(goal=500_000.0))
    assert "goal at least 500k 1/s (dashed line)" in chart
    (where,) = re.findall(r'class="goal" x1="([\d.]+)%"', chart)
    assert float(where) <= 100


@pytest.mark.parametrize("value", [0.0, -0.5], ids=["zero", "below zero"])
def test_what_is_not_above_zero_has_a_bar_without_length(value: float) -> None:
    figures = {"Switchback": Figure(value, value, value), "NSD": Figure(1, 1, 1)}
    assert widths(format_chart(make_row(figures=figures)))[0] == 0


def test_a_program_without_a_figure_is_named_beside_the_bars_of_the_others() -> None:
    assert '<p class="trouble">Unbound: not measured: it answers &lt;REFUSED&gt;</p>' in format_chart(make_row())


def test_a_chart_is_well_formed_whatever_the_names_are() -> None:
    row = make_row(title=EVIL, unit=EVIL, about=EVIL, figures={EVIL: Figure(1, 0.5, 2)}, faults={EVIL: EVIL})
    chart = format_chart(row)
    assert ET.fromstring(chart.replace("<br>", "<br/>")).tag == "figure"  # noqa: S314  # it is ours
    assert "<script" not in chart


@pytest.mark.parametrize(
    ("names", "identifier"),
    [(("dns", "table", "answers"), "dns-table-answers"), (("fleet", "AXFR, p50"), "fleet-axfr-p50"), (("%",), "")],
)
def test_an_identifier_has_letters_digits_and_hyphens(names: tuple[str, ...], identifier: str) -> None:
    assert make_identifier(*names) == identifier
