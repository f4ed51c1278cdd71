"""The schedule of alias look-ups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.external_dns.alias_schedule import AliasSchedule, pause_of


class Sought:
    """A schedule, and who needs which name."""

    def __init__(self) -> None:
        self.namespaces: dict[str, list[str]] = {}
        self.schedule = AliasSchedule(lambda name: self.namespaces.get(name, []))

    def seek(self, now: float, namespace: str, *names: str) -> None:
        for name in names:
            self.namespaces.setdefault(name, []).append(namespace)
        self.schedule.seek(names, now=now)

    def drop(self, *names: str) -> None:
        for name in names:
            del self.namespaces[name]
        self.schedule.drop(names)

    def take(self, now: float, *full: str) -> str | None:
        turn = self.schedule.take(now, full)
        return turn.hostname if turn is not None else None


@pytest.mark.parametrize(
    ("ttl", "pause"), [(None, 30), (0, 30), (30, 30), (31, 31), (300, 300), (301, 300), (2**31, 300)]
)
def test_a_record_is_kept_for_its_ttl_within_bounds(ttl: int | None, pause: float) -> None:
    assert pause_of(ttl) == pause


def test_a_new_name_is_due_at_once_and_again_after_its_pause() -> None:
    sought = Sought()
    assert (sought.take(0), sought.schedule.next_due()) == (None, None)
    sought.seek(0, "shop", "a.org")
    assert sought.schedule.next_due() == 0
    assert sought.take(0) == "a.org"
    assert (sought.take(0), sought.schedule.next_due()) == (None, None)
    sought.schedule.done("a.org", now=1, pause=30)
    assert (sought.take(30.9), sought.schedule.next_due()) == (None, 31)
    assert sought.take(31) == "a.org"


def test_a_name_that_is_dropped_is_looked_up_no_more() -> None:
    sought = Sought()
    sought.seek(0, "shop", "a.org", "b.org")
    assert sought.take(0) == "a.org"
    sought.drop("a.org", "b.org")
    sought.schedule.done("a.org", now=1, pause=30)
    assert (sought.take(99), sought.schedule.next_due(), len(sought.schedule)) == (None, None, 0)


def test_a_name_that_is_sought_again_amid_its_look_up_has_one_look_up() -> None:
    sought = Sought()
    sought.seek(0, "shop", "a.org")
    assert sought.take(0) == "a.org"
    sought.drop("a.org")
    sought.seek(0, "web", "a.org")
    assert sought.take(0) is None
    sought.schedule.done("a.org", now=1, pause=30)
    assert sought.take(31) == "a.org"


def test_a_name_of_two_namespaces_is_looked_up_once() -> None:
    sought = Sought()
    sought.namespaces["a.org"] = ["shop"]
    sought.seek(0, "web", "a.org")
    assert sought.take(0, "shop") == "a.org"
    assert sought.take(0) is None


def test_namespaces_take_turns_and_a_full_one_waits() -> None:
    sought = Sought()
    sought.seek(0, "slow", *(f"s{number}.org" for number in range(20_000)))
    sought.seek(0, "shop", "a.org", "b.org")
    taken = [sought.take(0) for _ in range(4)]
    assert {"a.org", "b.org"} < set(taken)
    assert sought.take(0, "slow") is None
    assert sought.schedule.next_due(["slow"]) == 30.0
    assert sought.schedule.next_due() == 0.0


EVENTS = st.lists(
    st.tuples(st.sampled_from(["seek", "drop", "take", "done"]), st.sampled_from("abc"), st.sampled_from("xy")),
    max_size=30,
)


@given(EVENTS)
def test_every_sought_name_has_its_turn_and_no_other(events: list[Any]) -> None:
    sought = Sought()
    busy: set[str] = set()
    now = 0.0
    for verb, name, namespace in events:
        now += 10
        if verb == "seek" and name not in sought.namespaces:
            sought.seek(now, namespace, name)
        elif verb == "drop" and name in sought.namespaces:
            sought.drop(name)
        elif verb == "take" and (taken := sought.take(now)) is not None:
            assert taken not in busy
            assert taken in sought.namespaces
            busy.add(taken)
        elif verb == "done" and name in busy:
            busy.discard(name)
            sought.schedule.done(name, now=now, pause=30)
    for name in busy:
        sought.schedule.done(name, now=now, pause=30)
    turns = {sought.take(now + 30) for _ in "abcd"}
    assert turns - {None} == set(sought.namespaces)
    assert sought.take(now + 30) is None
