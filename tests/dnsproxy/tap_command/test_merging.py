"""Merging by time: every event once, in order within the window, and never held long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.tap.event import TapEvent
from dnsproxy.tap_command.merging import HELD, WINDOW, Merging


def event(time: float, pod: str = "") -> TapEvent:
    text = f"2026-11-26T12:{int(time) // 60:02}:{time % 60:09.6f}Z"
    return TapEvent(text, "192.0.2.7", 53, "udp", "app.example.org", "A", "table", 0.001, pod=pod)


def test_two_pods_are_merged_by_their_times() -> None:
    merging = Merging()
    merging.add(event(2, "a"), now=10.0)
    merging.add(event(1, "b"), now=10.1)
    assert list(merging.take(now=10.0 + WINDOW - 0.01)) == []
    assert [one.pod for one in merging.take(now=10.0 + WINDOW)] == ["b", "a"]
    assert len(merging) == 0


def test_equal_times_keep_the_order_of_their_arrival() -> None:
    merging = Merging()
    for pod in "cab":
        merging.add(event(1, pod), now=1.0)
    assert [one.pod for one in merging.take(now=9.0)] == ["c", "a", "b"]


def test_an_event_that_comes_too_late_is_still_shown() -> None:
    merging = Merging()
    merging.add(event(2, "a"), now=10.0)
    assert [one.pod for one in merging.take(now=11.0)] == ["a"]
    merging.add(event(1, "b"), now=11.0)
    assert [one.pod for one in merging.take(now=12.0)] == ["b"]


def test_what_waits_is_bounded_and_comes_out_early_then() -> None:
    merging = Merging()
    for number in range(HELD + 3):
        merging.add(event(number / 100), now=1.0)
    assert len(list(merging.take(now=1.0))) == 3
    assert len(merging) == HELD


def test_the_end_shows_all_that_waits() -> None:
    merging = Merging()
    for time in (3, 1, 2):
        merging.add(event(time), now=1.0)
    assert [one.time for one in merging.take_all()] == [event(time).time for time in (1, 2, 3)]
    assert list(merging.take(now=99.0)) == []


arrivals = st.lists(st.tuples(st.floats(0, 0.4), st.floats(0, 50)), max_size=60)
"""The pause before each arrival, and the event's time."""


@given(arrivals)
def test_every_event_comes_out_once_and_within_the_window(steps: list[tuple[float, float]]) -> None:
    merging, now = Merging(), 0.0
    came: list[tuple[float, str]] = []
    left: list[str] = []
    for number, (pause, time) in enumerate(steps):
        now += pause
        merging.add(event(time, str(number)), now=now)
        came.append((now, str(number)))
        left += [one.pod for one in merging.take(now=now)]
        assert {pod for at, pod in came if now - at >= WINDOW} <= set(left)
    left += [one.pod for one in merging.take_all()]
    assert sorted(left) == sorted(pod for _, pod in came)


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, WINDOW * 0.9)), max_size=60))
def test_delays_shorter_than_the_window_leave_no_disorder(steps: list[tuple[float, float]]) -> None:
    """Events happen in order, and each arrives after its own delay."""
    happened, clock = list[tuple[float, TapEvent]](), 0.0
    for pause, delay in steps:
        clock += pause
        happened.append((clock + delay, event(clock)))
    merging, shown = Merging(), list[str]()
    for now, one in sorted(happened, key=lambda item: item[0]):
        merging.add(one, now=now)
        shown += [taken.time for taken in merging.take(now=now)]
    shown += [one.time for one in merging.take_all()]
    assert shown == sorted(shown)
