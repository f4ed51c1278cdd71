"""Work in slices: it is completed, other tasks run meanwhile, and the caller gets its result or its error."""

from __future__ import annotations

import gc
from collections.abc import Generator
from itertools import groupby

import pytest
import trio

from sidecar.loop import slices
from sidecar.loop.slices import SLICE, in_slices


class Clock:
    """Stands still but for what a step takes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(slices, "perf_counter", found)
    return found


@pytest.fixture
def done() -> list[str]:
    """What has happened, in order."""
    return []


def work(clock: Clock, done: list[str], *, count: int, takes: float) -> Generator[None, None, str]:
    for number in range(count):
        clock.now += takes
        done.append(f"step {number}")
        yield
    return "result"


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
async def test_every_step_is_done_and_the_result_is_theirs(clock: Clock, done: list[str], count: int) -> None:
    assert await in_slices(work(clock, done, count=count, takes=SLICE / 3)) == "result"
    assert done == [f"step {number}" for number in range(count)]


@pytest.mark.parametrize(
    ("takes", "most"),
    [
        pytest.param(SLICE * 0.26, 4, id="several steps a slice"),
        pytest.param(SLICE, 1, id="a step of a slice"),
        pytest.param(SLICE * 9, 1, id="a step that is longer than a slice"),
    ],
)
async def test_others_have_their_turn_after_every_slice(
    clock: Clock, done: list[str], nursery: trio.Nursery, takes: float, most: int
) -> None:
    async def other() -> None:
        while True:
            done.append("other")
            await trio.lowlevel.checkpoint()

    nursery.start_soon(other)
    await in_slices(work(clock, done, count=50, takes=takes))
    nursery.cancel_scope.cancel()
    in_a_row = [len(list(group)) for others, group in groupby(done, key=lambda what: what == "other") if not others]
    # Two slices can meet, because trio runs the tasks of one turn in any order.
    assert max(in_a_row) <= 2 * most


async def test_what_was_put_in_the_place_of_as_much_is_not_left_for_one_long_collection(clock: Clock) -> None:
    kept = [(str(number),) for number in range(5_000)]
    gc.collect()

    def replace() -> Generator[None, None, None]:
        for number in range(len(kept)):
            clock.now += SLICE / 100
            kept[number] = (str(-number),)
            yield

    await in_slices(replace())
    assert len(gc.get_objects(generation=0)) < len(kept) / 2


async def test_an_error_of_a_step_is_the_callers(clock: Clock, done: list[str]) -> None:
    def failing() -> Generator[None, None, None]:
        yield from work(clock, done, count=3, takes=SLICE)
        raise ValueError("a bad step")

    with pytest.raises(ValueError, match="a bad step"):
        await in_slices(failing())
    assert len(done) == 3


async def test_work_that_is_cancelled_is_closed(clock: Clock, done: list[str]) -> None:
    def endless() -> Generator[None, None, None]:
        try:
            while True:
                clock.now += SLICE
                yield
        finally:
            done.append("closed")

    with trio.CancelScope() as scope:
        scope.cancel()
        await in_slices(endless())
    assert scope.cancelled_caught
    assert done == ["closed"]


async def test_slices_wait_for_what_is_more_urgent(clock: Clock, done: list[str]) -> None:
    async def give_way() -> None:
        await trio.lowlevel.checkpoint()
        done.append("urgent")

    await in_slices(work(clock, done, count=4, takes=SLICE), give_way=give_way)
    assert done == ["step 0", "urgent", "step 1", "urgent", "step 2", "urgent", "step 3", "urgent"]
