"""Queries are counted once: by the listener, or while there is no collector by the count of the whole server."""

from __future__ import annotations

from collections.abc import Callable

from dnsproxy.dnstap.numbers import DnstapNumbers


def counting(*counts: int) -> Callable[[], int]:
    left = list(counts)
    return lambda: left.pop(0) if left else 0


def test_without_a_collector_every_query_is_dropped() -> None:
    asked = [10]
    numbers = DnstapNumbers(lambda: asked[0])
    assert (numbers.dropped, numbers.connected) == (0, False)
    asked[0] = 17
    assert numbers.dropped == 7
    assert numbers.dropped == 7


def test_with_a_collector_the_listener_counts() -> None:
    asked = [0]
    numbers = DnstapNumbers(lambda: asked[0])
    asked[0] = 5
    numbers.note_connected(counting(2, 0, 1))
    assert numbers.connected
    asked[0] = 100
    assert [numbers.dropped, numbers.dropped, numbers.dropped] == [7, 7, 8]


def test_what_a_lost_collector_did_not_get_is_added() -> None:
    asked = [0]
    numbers = DnstapNumbers(lambda: asked[0])
    numbers.note_connected(counting(3))
    numbers.drop(4)
    asked[0] = 50
    numbers.note_lost()
    assert (numbers.dropped, numbers.connected) == (7, False)
    asked[0] = 52
    assert numbers.dropped == 9
    numbers.note_connected(counting())
    assert numbers.dropped == 9


def test_counts_of_workers_that_end_never_make_it_less() -> None:
    asked = [10]
    numbers = DnstapNumbers(lambda: asked[0])
    asked[0] = 8
    assert numbers.dropped == 0
