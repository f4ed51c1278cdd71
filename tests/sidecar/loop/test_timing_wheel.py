"""The timing wheel, compared with a list of deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.loop.timing_wheel import NOWHERE, TICK, Wheel


class Thing:
    def __init__(self) -> None:
        self.slot = NOWHERE


def test_an_item_comes_out_once_at_or_after_its_time_within_two_ticks() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    thing = Thing()
    wheel.schedule(thing, 101)
    assert wheel.due(101 - TICK) == []
    assert wheel.due(101 + TICK) == [thing]
    assert wheel.due(1000) == []


def test_a_later_time_replaces_an_earlier_one_and_an_earlier_a_later() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    thing = Thing()
    wheel.schedule(thing, 101)
    wheel.schedule(thing, 105)
    assert wheel.due(104) == []
    wheel.schedule(thing, 104.5)
    assert wheel.due(105) == [thing]


def test_hastening_never_puts_off() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    thing = Thing()
    wheel.hasten(thing, 102)
    wheel.hasten(thing, 200)
    assert wheel.due(103) == [thing]


def test_a_time_that_has_passed_is_the_next_tick() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    thing = Thing()
    wheel.schedule(thing, 3)
    assert wheel.due(100 + TICK) == [thing]


def test_cancelling_what_is_not_there_is_no_fault() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    thing = Thing()
    wheel.cancel(thing)
    wheel.schedule(thing, 101)
    wheel.cancel(thing)
    wheel.cancel(thing)
    assert wheel.due(200) == []
    assert not wheel._slots


def test_a_clock_that_stands_still_or_jumps_loses_nothing() -> None:
    wheel: Wheel[Thing] = Wheel(now=100)
    things = [Thing() for _ in range(5)]
    for number, thing in enumerate(things):
        wheel.schedule(thing, 101 + number)
    assert wheel.due(100) == []
    assert wheel.due(100) == []
    assert set(wheel.due(1_000_000)) == set(things)


actions = st.lists(
    st.tuples(st.sampled_from(["schedule", "hasten", "cancel", "due"]), st.integers(0, 3), st.floats(0, 20)),
    max_size=60,
)


@given(actions)
def test_the_wheel_is_a_list_of_deadlines_at_the_grain_of_a_tick(actions: list[tuple[str, int, float]]) -> None:
    now = 50.0
    wheel: Wheel[Thing] = Wheel(now=now)
    things = [Thing() for _ in range(4)]
    deadlines: dict[int, float] = {}
    for action, number, seconds in actions:
        if action == "due":
            now += seconds
            came = {things.index(thing) for thing in wheel.due(now)}
            must = {n for n, at in deadlines.items() if at + 2 * TICK <= now}
            may = {n for n, at in deadlines.items() if at <= now}
            assert must <= came <= may
            for n in came:
                del deadlines[n]
        elif action == "cancel":
            wheel.cancel(things[number])
            deadlines.pop(number, None)
        else:
            at = now + seconds
            getattr(wheel, action)(things[number], at)
            if action == "schedule" or number not in deadlines or at < deadlines[number] - TICK:
                deadlines[number] = at
            elif at < deadlines[number]:
                # Within one tick both are the same slot or the one before.
                deadlines[number] = at if things[number].slot == int(at / TICK) + 1 else deadlines[number]
