from __future__ import annotations

import time

import pytest
import trio
from trio.testing import MockClock

from tests.kit.lag import measured_lag


async def test_a_loop_that_stands_still_is_late_by_that_time() -> None:
    async with measured_lag() as lag:
        await trio.testing.wait_all_tasks_blocked()
        time.sleep(0.5)  # noqa: ASYNC251  # the event loop stands still
    assert lag.longest >= 0.4


async def test_a_loop_that_only_waits_is_not_late(autojump_clock: MockClock) -> None:  # noqa: ARG001  # time itself
    async with measured_lag() as lag:
        await trio.sleep(10)
    assert lag.longest == pytest.approx(0.0, abs=1e-6)
