"""The fair queue: no number of names of one namespace delays another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.fair_queue import FairQueue, Turn


def drain(queue: FairQueue) -> list[str]:
    taken = []
    while (turn := queue.take()) is not None:
        taken.append(turn.hostname)
    return taken


def test_a_namespace_with_thousands_of_names_does_not_delay_the_others() -> None:
    queue = FairQueue(10_000)
    for number in range(9_020):
        queue.put(f"h{number}.example.org", "flood")
    queue.put("victim.example.org", "shop")
    assert Turn("victim.example.org", "shop") in [queue.take(), queue.take()]


def test_within_a_namespace_the_newest_comes_first_and_each_name_once() -> None:
    queue = FairQueue(10)
    for name in ("a", "b", "c", "a"):
        queue.put(name, "shop")
    assert drain(queue) == ["a", "c", "b"]


def test_a_full_namespace_takes_no_more_and_leaves_room_for_others() -> None:
    queue = FairQueue(2)
    assert [queue.put(name, "flood") for name in "abca"] == [True, True, False, True]
    assert queue.put("x", "shop")
    assert sorted(drain(queue)) == ["a", "b", "x"]
    assert not queue.has_turn()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["shop", "flood", "third"]))))
def test_every_name_comes_once_for_each_namespace_and_they_take_turns(rows: list[tuple[str, str]]) -> None:
    queue = FairQueue(100)
    for name, namespace in rows:
        queue.put(f"{name}.{namespace}", namespace)
    taken = drain(queue)
    assert sorted(taken) == sorted({f"{name}.{namespace}" for name, namespace in rows})
    left = [len({name for name, one in rows if one == namespace}) for namespace in {one for _, one in rows}]
    for turn in range(len(left)):
        assert len({name.partition(".")[2] for name in taken[: turn + 1]}) == turn + 1
