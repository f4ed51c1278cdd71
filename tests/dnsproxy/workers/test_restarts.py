"""When a worker is started again."""

from __future__ import annotations

import pytest

from dnsproxy.workers.restarts import MISSED, SETTLED, Pauses
from dnsproxy.workers.worker import BEAT


def test_one_that_has_worked_is_replaced_at_once_every_time() -> None:
    pauses = Pauses()
    assert [pauses.after(SETTLED) for _ in range(5)] == [0.0] * 5


def test_one_that_fails_at_its_start_is_tried_at_once_and_then_ever_more_seldom() -> None:
    pauses = Pauses()
    found = [pauses.after(0.1) for _ in range(10)]
    assert found == pytest.approx([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    assert pauses.after(SETTLED) == 0.0


def test_a_hung_worker_is_replaced_before_a_client_gives_up() -> None:
    assert (MISSED + 1) * BEAT < 5
