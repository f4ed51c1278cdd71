"""When what stops a subject is reported."""

from __future__ import annotations

from dnsproxy.operate.decide.facts import Subject
from dnsproxy.operate.report.lasting import PATIENCE, Stopped, note_stopped

ONE = Subject("one")


def reported(*steps: tuple[float, dict[Subject, str]], complete: bool = True) -> list[float]:
    """When `one` was reported."""
    state: dict[Subject, Stopped] = {}
    times = []
    for now, reasons in steps:
        state, found = note_stopped(state, reasons, complete=complete, now=now)
        times += [now] if ONE in found else []
    return times


def test_it_is_reported_once_it_has_lasted_and_not_again() -> None:
    assert reported(*((float(now), {ONE: "no port"}) for now in range(60))) == [PATIENCE]


def test_another_cause_is_reported_at_once_and_one_that_came_back_after_it_has_lasted() -> None:
    assert reported((0, {ONE: "a"}), (20, {ONE: "a"}), (21, {ONE: "b"}), (22, {ONE: "b"})) == [20, 21]
    back = (0.0, {ONE: "a"}), (20.0, {ONE: "a"}), (30.0, {ONE: ""}), (31.0, {ONE: "a"}), (40.0, {ONE: "a"})
    assert reported(*back, (46.0, {ONE: "a"})) == [20, 46]


def test_a_subject_that_was_away_is_a_new_one_unless_it_was_only_not_read() -> None:
    steps: list[tuple[float, dict[Subject, str]]]
    steps = [(0.0, {ONE: "a"}), (20.0, {ONE: "a"}), (21.0, {}), (30.0, {ONE: "a"}), (45.0, {ONE: "a"})]
    assert reported(*steps) == [20, 45]
    assert reported(*steps, complete=False) == [20]


def test_an_address_is_reported_once_while_it_is_there() -> None:
    state: dict[str, Stopped] = {}
    times = []
    for now, there in (
        (0.0, True),
        (15.0, True),
        (16.0, True),
        (20.0, False),
        (30.0, True),
        (44.0, True),
        (45.0, True),
    ):
        reasons = {"198.51.100.1": "no status names it"} if there else {}
        state, found = note_stopped(state, reasons, complete=True, now=now)
        times += [now] if found else []
    assert times == [15, 45]
