"""The memory of who asked: what it shows, how far it reaches back, and its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.tap import recent
from dnsproxy.tap.recent import CLIENTS, PAIRS, SHOWN, SLOT, WINDOW, AskedBy, Asking, RecentClients, asking_of
from dnsproxy.tap.seen import Outcome, Seen
from tests.kit import messages

NOON = 1_795_694_400.0  # 2026-11-26T12:00:00Z


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asking(name: str = "app.example.org", client: str = "192.0.2.7", subnet: str = "", *, time: float = NOON) -> Asking:
    return Asking(name, client, subnet, time)


def seen(query: bytes) -> Seen:
    return Seen(NOON, 0.001, True, "192.0.2.7", 5353, query, b"", Outcome.DROPPED)


def test_a_client_is_shown_with_its_count_and_its_last_time() -> None:
    memory = RecentClients(clock=Clock())
    for offset in (2.5, 0.25, 1.0):
        memory.add(asking(time=NOON + offset))
    memory.add(asking(name="other.example.org"))
    assert memory.asked_by("App.example.org") == (AskedBy("192.0.2.7", 3, "2026-11-26T12:00:02.500Z"),)
    assert memory.asked_by("none.example.org") == ()


def test_clients_of_one_resolver_are_told_apart_by_their_networks() -> None:
    memory = RecentClients(clock=Clock())
    memory.add(asking(subnet="198.51.100.1/32"))
    memory.add(asking(subnet="198.51.100.2/32"))
    assert [one.subnet for one in memory.asked_by("app.example.org")] == ["198.51.100.1/32", "198.51.100.2/32"]


def test_the_last_to_ask_comes_first_and_only_some_are_shown() -> None:
    memory = RecentClients(clock=Clock())
    for number in range(SHOWN + 5):
        memory.add(asking(client=f"2001:db8::{number:x}", time=NOON + number))
    shown = memory.asked_by("app.example.org")
    assert [one.client for one in shown] == [f"2001:db8::{number:x}" for number in range(SHOWN + 4, 4, -1)]


def test_nothing_is_remembered_longer_than_a_minute() -> None:
    clock = Clock()
    memory = RecentClients(clock=clock)
    memory.add(asking())
    clock.now += WINDOW
    assert memory.asked_by("app.example.org")
    clock.now += 0.001
    assert memory.asked_by("app.example.org") == ()
    assert len(memory) == 0


def test_a_flood_of_names_makes_the_memory_shorter_and_not_larger() -> None:
    clock = Clock()
    memory = RecentClients(clock=clock)
    memory.add(asking())
    clock.now += SLOT
    for number in range(PAIRS + 100):
        memory.add(asking(name=f"x{number}.example.org"))
        assert len(memory) <= PAIRS
    assert memory.asked_by("app.example.org") == ()


def test_one_name_does_not_take_the_room_of_others() -> None:
    memory = RecentClients(clock=Clock())
    memory.add(asking(name="quiet.example.org"))
    for number in range(PAIRS):
        memory.add(asking(client=f"2001:db8::{number:x}"))
    assert len(memory) == CLIENTS + 1
    assert len(memory.asked_by("quiet.example.org")) == 1


@given(
    st.lists(
        st.tuples(
            st.floats(0, 2 * SLOT),
            st.sampled_from(["a.example.org", "b.example.org"]),
            st.sampled_from(["192.0.2.1", "192.0.2.2"]),
        ),
        max_size=60,
    )
)
def test_it_shows_what_a_list_of_all_queries_has_of_the_last_minute(steps: list[tuple[float, str, str]]) -> None:
    clock, all_of_them = Clock(), list[tuple[float, str, str]]()
    memory = RecentClients(clock=clock)
    for pause, name, client in steps:
        clock.now += pause
        all_of_them.append((clock.now, name, client))
        memory.add(Asking(name, client, "", clock.now))
    for name in ("a.example.org", "b.example.org"):
        shown = {one.client: one.count for one in memory.asked_by(name)}
        for client in ("192.0.2.1", "192.0.2.2"):
            ages = [clock.now - at for at, *rest in all_of_them if rest == [name, client]]
            # What is older than the window is never shown, and what is a slot younger always is.
            most = sum(age <= WINDOW for age in ages)
            assert sum(age <= WINDOW - SLOT for age in ages) <= shown.get(client, 0) <= most


def test_what_is_remembered_of_a_query_is_its_lower_case_name() -> None:
    assert asking_of(seen(messages.query("App.Example.ORG"))) == asking()


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 12, id="no question"),
        pytest.param(messages.query("app.example.org")[:20], id="cut"),
    ],
)
def test_a_query_without_a_question_is_not_remembered(query: bytes) -> None:
    assert asking_of(seen(query)) is None


def test_the_bounds_are_what_the_guide_says() -> None:
    assert (recent.WINDOW, recent.PAIRS) == (60.0, 20_000)
