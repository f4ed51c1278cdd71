"""Questions that were asked become counts and seconds; who was not answered is counted, and so is who waited."""

from __future__ import annotations

import pytest

from tests.bench.faults.asking import NOTHING, PATIENCE, Asked, parse_asked, read_reply
from tests.bench.faults.outcome import Outcome, judge
from tests.bench.faults.report import Row, format_table, to_json
from tests.kit.messages import header, question, record

OURS, PUBLIC = "192.0.2.81", "198.51.100.7"


def outcome(*asked: Asked) -> Outcome:
    return judge(asked, begun=10.0, ended=20.0, ours=OURS)


def outside(at: float, seconds: float = 0.001, said: str = PUBLIC) -> Asked:
    return Asked(at, False, seconds, said)


def inside(at: float, seconds: float = 0.001, said: str = OURS) -> Asked:
    return Asked(at, True, seconds, said)


def test_where_nothing_happens_every_goal_is_reached() -> None:
    found = outcome(outside(9.0), inside(9.5), outside(15.0), inside(21.0))
    assert (found.outside, found.in_table, found.failed, found.slow, found.well_after, found.ours_after) == (2,) * 2 + (
        0,
    ) * 4
    assert found.reached
    assert found.said == {}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(outside(11.0, said="REFUSED"), id="an error outside the table"),
        pytest.param(outside(11.0, PATIENCE, NOTHING), id="silence outside the table"),
        pytest.param(outside(9.0, said="SERVFAIL"), id="an error before the fault"),
        pytest.param(outside(11.0, 2.6), id="a slow one outside"),
        pytest.param(inside(11.0, 2.6, PUBLIC), id="a slow one inside"),
        pytest.param(outside(15.1, 0.6), id="one that waits when all should be well"),
        pytest.param(inside(15.1, said="SERVFAIL"), id="an error inside when all should be well"),
    ],
)
def test_one_bad_lookup_misses_the_goal(bad: Asked) -> None:
    assert not outcome(outside(10.0), bad, inside(21.0)).reached


def test_lookups_that_wait_at_first_are_allowed() -> None:
    found = outcome(outside(10.5, 2.01), inside(14.9, 2.02, PUBLIC), outside(15.2))
    assert found.reached
    assert found.waited == 2
    assert found.well_after == pytest.approx(4.9)


def test_the_way_back_is_counted_from_the_end_of_the_fault() -> None:
    found = outcome(inside(19.9, said=PUBLIC), inside(20.4, said=PUBLIC), inside(20.5), outside(25.0))
    assert found.ours_after == pytest.approx(0.4)
    assert found.reached


def test_what_came_instead_is_told_by_its_name() -> None:
    found = outcome(outside(11.0, said="REFUSED"), inside(11.0, said="REFUSED"), outside(12.0, PATIENCE, NOTHING))
    assert found.said == {"REFUSED": 2, NOTHING: 1}
    assert (found.failed, found.failed_in_table) == (2, 1)


def test_of_no_lookups_there_are_no_figures() -> None:
    assert outcome().slowest == 0


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(header(0x8180, (1, 1, 0, 0)) + question("a.b") + record(1, bytes([192, 0, 2, 81])), OURS, id="A"),
        pytest.param(header(0x8180) + question("a.b"), "no answer", id="NODATA"),
        pytest.param(header(0x8182) + question("a.b"), "SERVFAIL", id="SERVFAIL"),
        pytest.param(header(0x8185) + question("a.b"), "REFUSED", id="REFUSED"),
        pytest.param(header(0x8189) + question("a.b"), "another error", id="an RCODE that nobody sends"),
        pytest.param(b"\0\0", "another error", id="two octets"),
        pytest.param(b"", "another error", id="nothing at all"),
    ],
)
def test_a_reply_is_an_address_or_what_came_instead(reply: bytes, said: str) -> None:
    assert read_reply(reply) == said


def test_what_the_process_prints_is_read_back() -> None:
    assert parse_asked('[[1.5, true, 0.001, "192.0.2.81"]]') == [inside(1.5)]
    with pytest.raises(ValueError, match="Expecting"):
        parse_asked("Traceback")


def test_the_table_has_every_round_and_the_word_for_a_goal_that_is_missed() -> None:
    rows = [
        Row("1.14.7", "calm", outcome(outside(11.0)), 65.2),
        Row("1.14.7", "hung", outcome(outside(11.0, said="REFUSED")), 90.1, 3),
        Row("1.9.4", "killed", None, trouble="it did not start"),
    ]
    text = format_table(rows)
    assert "yes" in text.splitlines()[2]
    assert "NO" in text.splitlines()[3]
    assert "1.9.4, killed: not measured: it did not start" in text
    assert "1.14.7, hung: failed with 1 x REFUSED" in text
    assert [row["reached"] for row in to_json(rows, rate=1)["rows"]] == [True, False, None]
