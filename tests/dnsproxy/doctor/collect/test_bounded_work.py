"""Jobs are bounded in number and in time, and the first items are done first."""

from __future__ import annotations

import math

import pytest
import trio

from dnsproxy.doctor.collect.bounded_work import TOGETHER, Finished, run_all
from dnsproxy.doctor.facts.model import ReadFailure


async def test_results_are_in_the_order_of_the_items_and_counted_as_they_come() -> None:
    gates = [trio.Event() for _ in range(3)]
    told: list[int] = []

    async def job(index: int) -> str:
        if index < 2:
            await gates[index + 1].wait()
        gates[index].set()
        return f"result {index}"

    finished = await run_all(job, range(3), told.append, seconds=30)
    assert finished == Finished(("result 0", "result 1", "result 2"), 3, 30)
    assert told == [1, 2, 3]
    assert finished.failures("dial the ports", "connections") == ()


async def test_no_more_run_at_once_than_allowed_and_they_start_in_order(autojump_clock: object) -> None:  # noqa: ARG001
    started: list[int] = []
    most = 0
    running = 0

    async def job(index: int) -> None:
        nonlocal most, running
        started.append(index)
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1

    await run_all(job, range(3 * TOGETHER), lambda _: None, seconds=30)
    assert most == TOGETHER
    assert sorted(started[:TOGETHER]) == list(range(TOGETHER))


@pytest.mark.parametrize(
    ("hanging", "failures"),
    [
        (range(1), ("1 of 100 connections did not finish within 30 s",)),
        (range(TOGETHER), ("100 of 100 connections did not finish within 30 s",)),
        (range(98, 100), ("2 of 100 connections did not finish within 30 s",)),
        (range(0), ()),
    ],
    ids=["the first", "as many as run at once", "the last", "none"],
)
async def test_what_does_not_finish_in_time_is_counted(
    autojump_clock: object,  # noqa: ARG001
    hanging: range,
    failures: tuple[str, ...],
) -> None:
    async def job(index: int) -> int:
        await trio.sleep(math.inf if index in hanging else 0)
        return index

    before = trio.current_time()
    finished = await run_all(job, range(100), lambda _: None, seconds=30)
    assert trio.current_time() - before == pytest.approx(30 if hanging else 0)
    assert set(finished.results).isdisjoint(hanging)
    assert len(finished.results) == (0 if len(hanging) == TOGETHER else 100 - len(hanging))
    whys = (ReadFailure("dial the ports", why) for why in failures)
    assert finished.failures("dial the ports", "connections") == tuple(whys)


async def test_no_item_is_no_job() -> None:
    assert await run_all(trio.sleep, [], lambda _: None, seconds=0) == Finished((), 0, 0)
