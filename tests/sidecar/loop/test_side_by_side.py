"""Side by side: results in the program's order, and one plain StartError."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sidecar.loop.side_by_side import read_each, side_by_side
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


async def wait(seconds: float) -> float:
    await trio.sleep(seconds)
    return seconds


async def fail(text: str) -> float:
    raise StartError(text, status=ExitStatus.UNKNOWN)


async def wait_or_fail(seconds: float | None) -> float:
    return await (fail("no credentials") if seconds is None else wait(seconds))


async def test_results_come_in_the_order_of_the_program(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    assert await read_each(wait, [3.0, 1.0, 2.0]) == [3.0, 1.0, 2.0]
    assert autojump_clock.current_time() - begun == pytest.approx(3)


async def test_a_result_is_not_there_before_the_end_of_the_block() -> None:
    async with side_by_side() as start:
        pending = start(wait, 0.0)
        with pytest.raises(AttributeError):
            _ = pending.value
    assert pending.value == 0.0


async def test_an_error_of_one_ends_the_others_and_is_raised_as_it_is(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    with pytest.raises(StartError, match="no credentials"):
        await read_each(wait_or_fail, (50.0, None))
    assert autojump_clock.current_time() == begun


async def test_an_error_of_a_read_within_a_read_is_raised_as_it_is() -> None:
    with pytest.raises(StartError, match="no credentials"):
        await read_each(lambda text: read_each(fail, [text]), ["no credentials"])
