from __future__ import annotations

import math
from pathlib import Path

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.soak.questions import format_hosts
from tests.soak.traffic import TICK, Clock, Due, replace_hosts


@given(st.floats(0, 20_000), st.integers(1, 500))
def test_what_is_due_adds_up_to_the_rate(rate: float, count: int) -> None:
    due = Due(rate)
    taken = [due.take() for _ in range(count)]
    assert abs(sum(taken) - rate * TICK * count) <= 1.001
    assert max(taken) <= math.ceil(rate * TICK) + 1


async def test_a_clock_ticks_on_time_and_leaves_out_what_is_late(autojump_clock: trio.testing.MockClock) -> None:
    begun = autojump_clock.current_time()
    clock, seen = Clock(1.0), []
    for _ in range(5):
        await clock.tick()
        seen.append(round(autojump_clock.current_time() - begun, 6))
        if len(seen) == 2:
            await trio.sleep(3.5)
    assert seen == [1, 2, 6, 7, 8]


def test_a_hosts_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    replace_hosts(path, 1)
    before = path.stat().st_ino
    with path.open() as still_open:
        replace_hosts(path, 2)
        assert still_open.read() == format_hosts(1)
    assert path.read_text() == format_hosts(2)
    assert path.stat().st_ino != before
    assert list(tmp_path.iterdir()) == [path]
