from __future__ import annotations

import json
from typing import Any

import pytest

from docs.speed.run import Figure, format_run, parse_run
from tests.docs.speed.runs import make_row, make_run


def test_what_is_written_is_read_back() -> None:
    run = make_run()
    written = format_run(run)
    assert format_run(parse_run(written.encode())) == written
    assert parse_run(written.encode()).find("dns-table-answers") is not None


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(format_run(make_run())), **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="no run"),
        pytest.param(b"{}", id="without its parts"),
        pytest.param(changed(schema=2), id="a later schema"),
        pytest.param(changed(rows=3), id="rows that are none"),
        pytest.param(changed(benches=[]), id="rows of an unknown benchmark"),
        pytest.param(changed(rows=json.loads(changed())["rows"] * 2), id="two rows with one id"),
        pytest.param(changed(minutes="20"), id="a number as text"),
    ],
)
def test_another_form_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_run(content)


@pytest.mark.parametrize(("better", "ahead"), [("higher", True), ("lower", False)])
def test_a_ratio_is_ours_to_theirs_and_says_who_is_ahead(better: Any, ahead: bool) -> None:
    row = make_row(better=better)
    assert row.ratio("NSD") == pytest.approx(1.2)
    assert row.is_ahead("NSD") is ahead


@pytest.mark.parametrize(
    ("peer", "figures"),
    [
        pytest.param("Switchback", {"Switchback": Figure(1, 1, 1)}, id="ourselves"),
        pytest.param("NSD", {"Switchback": Figure(1, 1, 1)}, id="theirs is missing"),
        pytest.param("NSD", {"NSD": Figure(1, 1, 1)}, id="ours is missing"),
        pytest.param("NSD", {"Switchback": Figure(1, 1, 1), "NSD": Figure(0, 0, 0)}, id="theirs is zero"),
        pytest.param("NSD", {"Switchback": Figure(1, 1, 1), "NSD": Figure(-1, -2, 1)}, id="theirs is below zero"),
        pytest.param("NSD", {"Switchback": Figure(-1, -2, 1), "NSD": Figure(1, 1, 1)}, id="ours is below zero"),
    ],
)
def test_there_is_no_ratio_without_two_figures(peer: str, figures: dict[str, Figure]) -> None:
    row = make_row(figures=figures, better="lower")
    assert row.ratio(peer) is None
    assert not row.is_ahead(peer)
