"""The guide shows the run that docs/speed.json has, which `make bench ARGS=--record` writes again."""

from __future__ import annotations

import re

import pytest

from docs.generated import ROOT, fill_in
from docs.speed.run import Figure, format_run
from docs.speed.tables import RECORDED, format_headlines, format_ratios, read_recorded, update_readme
from tests.docs.speed.runs import make_row, make_run


def test_the_recorded_run_is_as_the_runner_writes_it() -> None:
    run = read_recorded()
    assert format_run(run) == RECORDED.read_text(encoding="utf-8")
    assert not any(bench.failed for bench in run.benches)
    assert "dirty" not in run.commit


@pytest.mark.parametrize("part", ["headlines", "answers", "relay"])
def test_a_part_of_the_guide_has_the_ratios_of_the_recorded_run(part: str) -> None:
    table = fill_in(f"<!-- generated: speed {part} -->")
    assert len(table.splitlines()) > 5
    assert f"<!-- generated: speed {part} -->" in (ROOT / "docs" / "pages" / "speed.md").read_text(encoding="utf-8")


def test_a_ratio_is_under_its_peer_and_a_missing_one_is_empty() -> None:
    other = make_row(
        id="dns-edns-answers", title="EDNS", figures={"Switchback": Figure(1, 1, 1), "BIND": Figure(2, 2, 2)}
    )
    assert format_ratios(make_run(make_row(), other), "dns-").splitlines() == [
        "| ours / theirs | NSD | BIND |",
        "| --- | --- | --- |",
        "| Answers a second (more is better) | 1.20 |  |",
        "| EDNS (more is better) |  | 0.50 |",
    ]


def test_rows_without_peers_have_no_line() -> None:
    assert len(format_ratios(make_run(make_row(figures={"Switchback": Figure(1, 1, 1)})), "").splitlines()) == 2


def test_a_headline_names_its_peers() -> None:
    (row,) = format_headlines(make_run()).splitlines()[2:]
    assert re.fullmatch(r"\| answers a second, 10,000 names \| 1\.20 \W NSD \|", row)


def test_rows_of_the_readme_are_replaced_removed_or_left_alone() -> None:
    text = "| work | x |\n| answers a second, 10,000 names | old |\n| the same with EDNS | old |\n| other | old |\n"
    updated = update_readme(text, make_run()).splitlines()
    assert updated[0] == "| work | x |"
    assert "1.20" in updated[1]
    assert updated[2:] == ["| other | old |"]
