"""Several ways to one answer, on a clock that only moves when everybody waits."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.forward.race import Ask, first_answer

PATIENCE = 1.0


class Ways:
    """Ways that answer or fail after some seconds, and what became of each."""

    def __init__(self, *ways: tuple[float, bytes | None]) -> None:
        self._ways = ways
        self.asked_at: list[float] = []
        self.cancelled: list[int] = []
        self._began = trio.current_time()

    def __iter__(self) -> Iterator[Ask]:
        for number, (seconds, answer) in enumerate(self._ways):
            yield self._make(number, seconds, answer)

    def _make(self, number: int, seconds: float, answer: bytes | None) -> Ask:
        async def ask() -> bytes | None:
            self.asked_at.append(trio.current_time() - self._began)
            try:
                await trio.sleep(seconds)
            except trio.Cancelled:
                self.cancelled.append(number)
                raise
            return answer

        return ask


async def test_the_first_way_is_enough_where_it_answers_in_time(autojump_clock: MockClock) -> None:
    ways = Ways((0.9, b"a"), (0, b"b"))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert ways.asked_at == [0]


async def test_a_way_that_fails_gives_way_to_the_next_at_once(autojump_clock: MockClock) -> None:
    ways = Ways((0.1, None), (0.2, None), (0.3, b"c"))
    assert await first_answer(ways, patience=PATIENCE) == b"c"
    assert ways.asked_at == pytest.approx([0, 0.1, 0.3])


async def test_a_silent_way_is_not_given_up_for_the_next(autojump_clock: MockClock) -> None:
    ways = Ways((1.5, b"a"), (99, b"b"))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert (ways.asked_at, ways.cancelled) == ([0, 1.0], [1])


async def test_the_next_way_answers_while_the_first_is_silent_and_nothing_is_left_running(
    autojump_clock: MockClock,
) -> None:
    ways = Ways((99, b"a"), (99, b"b"), (0.5, b"c"))
    assert await first_answer(ways, patience=PATIENCE) == b"c"
    assert ways.asked_at == [0, 1.0, 2.0]
    assert sorted(ways.cancelled) == [0, 1]


async def test_an_early_failure_of_a_way_beside_another_does_not_end_the_race(autojump_clock: MockClock) -> None:
    ways = Ways((2.5, b"a"), (0.1, None), (0.1, None))
    assert await first_answer(ways, patience=PATIENCE) == b"a"
    assert ways.asked_at == pytest.approx([0, 1.0, 1.1])


async def test_when_the_last_way_was_tried_all_are_waited_for(autojump_clock: MockClock) -> None:
    ways = Ways((5, None), (6, b"b"), (0.1, None))
    assert await first_answer(ways, patience=PATIENCE) == b"b"


async def test_no_way_left_is_no_answer(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((0.1, None), (5, None), (0, None)), patience=PATIENCE) is None


async def test_no_way_at_all_is_no_answer(autojump_clock: MockClock) -> None:
    assert await first_answer([], patience=PATIENCE) is None


async def test_an_empty_answer_is_an_answer(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((0, b""), (0, b"b")), patience=PATIENCE) == b""


async def test_two_answers_at_one_moment_are_one(autojump_clock: MockClock) -> None:
    assert await first_answer(Ways((2.0, b"a"), (1.0, b"b")), patience=PATIENCE) in (b"a", b"b")


async def test_a_deadline_of_the_caller_ends_every_way(autojump_clock: MockClock) -> None:
    ways = Ways((99, b"a"), (99, b"b"))
    with trio.move_on_after(1.5) as waiting:
        await first_answer(ways, patience=PATIENCE)
    assert waiting.cancelled_caught
    assert sorted(ways.cancelled) == [0, 1]
