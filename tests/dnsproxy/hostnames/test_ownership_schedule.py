"""Which hostname is looked up next: each has its turn, and no queue starves the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.ownership_schedule import DEFAULT_PACE, MOST_NEW, OwnershipSchedule

EVERY = DEFAULT_PACE.every
JITTER = DEFAULT_PACE.jitter


def drain(schedule: OwnershipSchedule, now: float = 0, full: Collection[str] = ()) -> list[str]:
    taken = []
    while (turn := schedule.take(now, full)) is not None:
        taken.append(turn.hostname)
    return taken


def begin(schedule: OwnershipSchedule, rows: Mapping[str, str], *, now: float = 0) -> None:
    """Begin a round of hostnames, each with its namespace, and queue all of them."""
    schedule.begin_round(list(rows), now=now, random=0.5)
    while schedule.enlist(lambda hostname: [rows[hostname]]):
        pass


def test_nothing_to_do_is_none() -> None:
    assert drain(OwnershipSchedule(DEFAULT_PACE)) == []


def test_a_round_gives_each_name_once_and_the_next_begins_an_hour_later() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    assert schedule.round_is_due(0)
    schedule.begin_round(["a", "b", "c"], now=100, random=0.5)
    assert not schedule.round_is_due(100 + 2 * EVERY), "the names of this round are queued first"
    assert [schedule.enlist(lambda _: ["shop"]) for _ in range(4)] == [True, True, True, False]
    assert drain(schedule) == ["a", "b", "c"]
    assert not schedule.round_is_due(100 + EVERY - 1)
    assert schedule.round_is_due(100 + EVERY)


@given(st.floats(0, 1, exclude_max=True))
def test_rounds_begin_a_little_earlier_or_later(random: float) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    schedule.begin_round([], now=0, random=random)
    assert not schedule.round_is_due(EVERY * (1 - JITTER) - 1)
    assert schedule.round_is_due(EVERY * (1 + JITTER))


def test_of_new_names_the_newest_comes_first_and_each_once() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    schedule.note(["a", "b"])
    schedule.note(["c", "a"])
    assert drain(schedule) == ["a", "c", "b"]


def test_a_name_comes_again_at_its_time_and_the_last_time_counts() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    schedule.again("a", at=30)
    schedule.again("b", at=20)
    schedule.again("a", at=50)
    assert drain(schedule, 19) == []
    assert drain(schedule, 40) == ["b"]
    assert drain(schedule, 50) == ["a"]
    schedule.again("a", at=60)
    schedule.again("a", at=55)
    assert drain(schedule, 100) == ["a"]


def test_the_pause_ends_when_a_time_comes_or_a_round() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    assert schedule.pause(100) == 0
    schedule.begin_round([], now=100, random=0.5)
    assert schedule.pause(200) == EVERY - 100
    schedule.again("a", at=250)
    assert (schedule.pause(200), schedule.pause(300)) == (50, 0)


@pytest.mark.parametrize("left", ["new", "round"])
def test_there_is_no_pause_while_anything_is_left(left: str) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    begin(schedule, {"a": "shop", "b": "shop"} if left == "round" else {}, now=100)
    schedule.note(["a", "b"] if left == "new" else [])
    pauses = []
    while schedule.take(100) is not None:
        pauses.append(schedule.pause(100))
    assert pauses == [0, EVERY]


@pytest.mark.parametrize("busy", ["new", "again", "round"])
def test_a_flood_of_one_sort_leaves_the_others_their_turns(busy: str) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    begin(schedule, {f"round {number}": "shop" for number in range(300 if busy == "round" else 10)})
    taken: Counter[str] = Counter()
    for number in range(300):
        if busy == "new":
            schedule.note([f"new {number}"])
        elif busy == "again":
            schedule.again(f"again {number}", at=0)
        if number < 10:
            schedule.note([f"new x{number}"])
            schedule.again(f"again x{number}", at=0)
        turn = schedule.take(0)
        assert turn is not None
        taken[turn.hostname.partition(" ")[0]] += 1
    others = {"new", "again", "round"} - {busy}
    assert {one: taken[one] for one in others} == dict.fromkeys(others, 10)


def test_more_new_names_than_are_remembered_bring_the_next_round_forward() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    schedule.begin_round([], now=0, random=0)
    schedule.note(str(number) for number in range(MOST_NEW))
    assert not schedule.round_is_due(1)
    schedule.note(["one too many"])
    assert not schedule.round_is_due(DEFAULT_PACE.doubted - 1), "however many come, rounds do not follow at once"
    assert schedule.round_is_due(DEFAULT_PACE.doubted)
    assert len(drain(schedule)) == MOST_NEW


names = st.sampled_from("abcdef")
steps = st.lists(
    st.tuples(st.just("note"), st.lists(names))
    | st.tuples(st.just("again"), st.tuples(names, st.integers(0, 50)))
    | st.tuples(st.just("round"), st.lists(names, unique=True))
    | st.tuples(st.just("take"), st.integers(0, 50))
)


@given(steps)
def test_every_name_that_is_asked_for_comes_and_no_other(history: list[tuple[str, Any]]) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    wanted: set[str] = set()
    for step, value in history:
        match step, value:
            case "note", [*hostnames]:
                schedule.note(hostnames)
                wanted |= {*hostnames}
            case "again", (str(hostname), int(at)):
                schedule.again(hostname, at=at)
                wanted.add(hostname)
            case "round", [*hostnames] if schedule.round_is_due(float("inf")):
                begin(schedule, dict.fromkeys(hostnames, "shop"))
                wanted |= {*hostnames}
            case "take", int(now):
                taken = schedule.take(now)
                assert taken is None or taken.hostname in wanted
    before = set(wanted)
    assert {*drain(schedule, 50)} <= before
    assert drain(schedule, 50) == []


@given(st.integers(0, 300), st.permutations(["aaa", "shop", "zzz"]))
def test_whoever_claims_a_name_too_does_not_delay_its_next_look(flood: int, namespaces: list[str]) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    for number in range(flood):
        schedule.again(f"n{number}", at=10, namespace="aaa")
    for namespace in namespaces:
        schedule.again("victim", at=10, namespace=namespace)
    turns = [schedule.take(10) for _ in range(3)]
    assert "victim" in [turn.hostname for turn in turns if turn]
    assert "victim" not in drain(schedule, 10), "one look is for all that claim the name"


def test_due_names_come_oldest_first() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    for number, hostname in enumerate(["first", "second", "third"]):
        schedule.again(hostname, at=number, namespace="shop")
    assert drain(schedule, 10) == ["first", "second", "third"]


def test_more_due_names_than_are_queued_come_later_and_none_is_lost() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    wanted = {f"n{number}" for number in range(MOST_NEW + 3)}
    for hostname in wanted:
        schedule.again(hostname, at=10, namespace="aaa")
    now = drain(schedule, 10)
    assert len(now) == MOST_NEW
    assert {*now, *drain(schedule, 10 + DEFAULT_PACE.doubted)} == wanted


def test_in_a_round_the_namespaces_take_turns() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    begin(schedule, {**{f"n{number}": "flood" for number in range(1000)}, "victim": "shop"})
    assert "victim" in drain_some(schedule, 2)


def drain_some(schedule: OwnershipSchedule, count: int) -> list[str]:
    turns = [schedule.take(0) for _ in range(count)]
    return [turn.hostname for turn in turns if turn]


@pytest.mark.parametrize("sort", ["new", "again", "round"])
def test_a_full_namespace_waits_and_the_others_do_not(sort: str) -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    rows = {"a": "slow", "b": "slow", "c": "shop"}
    begin(schedule, rows if sort == "round" else {})
    for hostname, namespace in rows.items():
        if sort == "new":
            schedule.note([hostname], namespace=namespace)
        elif sort == "again":
            schedule.again(hostname, at=0, namespace=namespace)
    assert drain(schedule, 0, full={"slow"}) == ["c"]
    assert (schedule.pause(0, {"slow"}), schedule.pause(0)) == (EVERY, 0)
    assert sorted(drain(schedule)) == ["a", "b"]


def test_a_namespace_with_names_left_does_not_hold_up_the_next_round() -> None:
    schedule = OwnershipSchedule(DEFAULT_PACE)
    rows = {"a": "slow", "b": "slow", "c": "shop"}
    begin(schedule, rows)
    assert drain(schedule, 0, full={"slow"}) == ["c"]
    assert schedule.round_is_due(EVERY)
    begin(schedule, rows, now=EVERY)
    assert drain(schedule, EVERY, full={"slow"}) == ["c"]
    assert drain(schedule, EVERY) == ["a", "b"], "each once, in its old place"
