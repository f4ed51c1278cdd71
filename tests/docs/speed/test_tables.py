"""The guide shows the run that docs/speed.json has, which `make bench ARGS=--record` writes again."""

from __future__ import annotations

import re
from typing import Final

import pytest

from docs.generated import ROOT, fill_in
from docs.speed.headlines import HEADLINES, LIMIT_WORK
from docs.speed.run import Figure, Run, format_run
from docs.speed.tables import (
    PARTS,
    README_ROWS,
    RECORDED,
    format_headlines,
    format_ratios,
    format_readme,
    format_times_of,
    read_recorded,
    update_readme,
)
from tests.docs.speed.runs import make_row, make_run


def test_the_recorded_run_is_as_the_runner_writes_it() -> None:
    run = read_recorded()
    assert format_run(run) == RECORDED.read_text(encoding="utf-8")
    assert not any(bench.failed for bench in run.benches)
    assert "dirty" not in run.commit


@pytest.mark.parametrize("part", ["headlines", "answers", "relay", "latency"])
def test_a_part_of_the_guide_has_the_ratios_of_the_recorded_run(part: str) -> None:
    line = f"*(make docs writes here: speed {part})*"
    rows = [row.split(" | ")[0] for row in fill_in(line).splitlines()]
    assert len(rows) > 5
    assert len(set(rows)) == len(rows)
    assert line in (ROOT / "docs" / "pages" / "speed.md").read_text(encoding="utf-8")


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


def test_the_readme_has_the_table_of_the_recorded_run() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert update_readme(readme, read_recorded()) == readme


def test_the_table_of_the_readme_is_replaced_and_nothing_else() -> None:
    head, other = "# Switchback\n\n| work | ours / theirs |\n| --- | --- |\n", "\n| work | x |\n| kept | y |\n"
    updated = update_readme(f"{head}| old | 1 |\n| older | 2 |\n{other}", make_run())
    assert updated.startswith(f"{head}| answers a second, 10,000 names | 1.20 ")
    assert "old" not in updated
    assert updated.endswith(f" |\n{other}")
    assert update_readme(updated, make_run()) == updated


def test_a_readme_without_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="README"):
        update_readme("# Switchback\n", make_run())


def run_with(*identifiers: str, **figures: Figure) -> Run:
    return make_run(*(make_row(id=one, figures={**make_row().figures, **figures}) for one in identifiers))


FULL: Final = [
    make_row(id=one.row, figures={"Switchback": Figure(1, 1, 1), **{peer: Figure(2, 2, 2) for peer in one.peers}})
    for one in HEADLINES
    if one.work != LIMIT_WORK
]


@pytest.mark.parametrize("count", range(len(FULL) + 1))
def test_the_table_of_the_readme_has_as_many_rows_whatever_was_measured(count: int) -> None:
    run = make_run(*(FULL[:count] or [make_row(id="dns-other")]))
    assert len(format_readme(run).splitlines()) == 2 + README_ROWS


def test_a_headline_that_was_not_measured_gives_way_to_another_or_says_so() -> None:
    everything = works_of(format_readme(make_run(*FULL)))
    assert works_of(format_readme(make_run(*FULL[1:])))[0] != everything[0]
    assert format_readme(run_with("dns-table-answers")).splitlines()[-1].endswith(" | not measured |")


def test_the_readme_compares_with_a_c_loop_once_that_is_measured() -> None:
    measured = run_with("dns-table-answers", **{"C loop": Figure(200_000.0, 1, 1)})
    assert f"| {LIMIT_WORK} | 0.60 \u00d7 C loop |" in format_readme(measured).splitlines()
    assert LIMIT_WORK not in format_headlines(run_with("dns-table-answers"))


def works_of(table: str) -> list[str]:
    return [line.split(" | ")[0] for line in table.splitlines()[2:]]


AT_REST: Final = {"bench": "dns", "unit": "ms", "better": "lower", "title": "Time of an answer at rest, median"}


def test_answers_at_rest_are_times_with_the_ratio_beside_each_peer() -> None:
    figures = {"Switchback": Figure(0.0545, 0.03, 0.07), "NSD": Figure(0.0367, 0.02, 0.04)}
    thousand = make_row(id="dns-rest-1000-p50", about="1,000 a second", figures=figures, **AT_REST)
    hundred = make_row(id="dns-rest-100-p50", about="", figures={"Switchback": figures["Switchback"]}, **AT_REST)
    assert format_times_of(make_run(make_row(), thousand, hundred), "dns-rest-").splitlines() == [
        "| less is better; in brackets ours / theirs | Switchback | NSD |",
        "| --- | --- | --- |",
        "| Time of an answer at rest, median (1,000 a second) | 0.0545 ms | 0.0367 ms (1.49) |",
        "| Time of an answer at rest, median | 0.0545 ms |  |",
    ]


def test_answers_at_rest_have_a_table_of_their_own() -> None:
    thousand = make_row(id="dns-rest-1000-p50", **AT_REST)
    run = make_run(make_row(), thousand)
    assert "at rest" not in PARTS["answers"](run)
    assert "at rest" in PARTS["rest"](run)


def test_without_rows_at_rest_the_guide_says_that_they_were_not_measured() -> None:
    assert PARTS["rest"](make_run()) == "The last recorded run did not measure it."


def test_the_guide_has_a_place_for_answers_at_rest() -> None:
    assert "*(make docs writes here: speed rest)*" in (ROOT / "docs" / "pages" / "speed.md").read_text(encoding="utf-8")
