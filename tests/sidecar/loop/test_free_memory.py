"""Free memory: really given back by glibc, once for each burst of work, and never where the C library cannot."""

from __future__ import annotations

import ctypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sidecar.loop import free_memory
from sidecar.loop.free_memory import MUCH, FreeMemory, find_trim, give_back

PAGE: Final = 4096
BLOCKS: Final = 20_000
BLOCK: Final = 1_000
"""Octets: more than Python's own allocator takes, less than what glibc maps by itself."""


def resident() -> int:
    """Octets of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(find_trim() is None, reason="the C library has no malloc_trim")
async def test_free_pages_below_a_block_in_use_are_given_back() -> None:
    blocks = [bytes(BLOCK) for _ in range(BLOCKS)]
    last = blocks[-1]
    del blocks
    before = resident()
    await give_back()
    assert before - resident() > BLOCKS * BLOCK / 2
    assert len(last) == BLOCK


class NoTrim:
    """A C library without malloc_trim."""


def no_library(_: None) -> NoTrim:
    raise OSError("cannot open the program itself")


@pytest.mark.parametrize("library", [lambda _: NoTrim(), no_library], ids=["another C library", "a static program"])
async def test_a_c_library_that_cannot_is_left_alone(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library)
    assert find_trim() is None
    await give_back()


class Counted:
    """Counts how often memory is given back."""

    def __init__(self) -> None:
        self.times: list[float] = []

    async def __call__(self) -> None:
        self.times.append(trio.current_time())


@asynccontextmanager
async def running(counted: Counted) -> AsyncIterator[FreeMemory]:
    memory = FreeMemory(give_back=counted)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.run)
        await wait_all_tasks_blocked()
        yield memory
        nursery.cancel_scope.cancel()


async def test_little_work_gives_nothing_back(autojump_clock: MockClock) -> None:  # noqa: ARG001
    counted = Counted()
    async with running(counted) as memory:
        memory.note(MUCH - 1)
        await trio.sleep(free_memory._QUIET * 3)
    assert counted.times == []


async def test_little_by_little_becomes_much(autojump_clock: MockClock) -> None:  # noqa: ARG001
    counted = Counted()
    async with running(counted) as memory:
        for _ in range(MUCH):
            memory.note(1)
            await trio.sleep(0.001)
        await trio.sleep(free_memory._QUIET * 3)
    assert len(counted.times) == 1


async def test_memory_is_given_back_once_after_the_last_part_of_a_long_list(autojump_clock: MockClock) -> None:  # noqa: ARG001
    counted = Counted()
    async with running(counted) as memory:
        for _ in range(12):
            memory.note(MUCH)
            await trio.sleep(free_memory._QUIET / 4)
        assert counted.times == []
        over = trio.current_time()
        await trio.sleep(free_memory._QUIET * 3)
    (given,) = counted.times
    assert given - over <= free_memory._QUIET


async def test_work_while_memory_is_given_back_counts_for_the_next_time(autojump_clock: MockClock) -> None:  # noqa: ARG001
    times = []

    async def give_back_slowly() -> None:
        times.append(trio.current_time())
        await trio.sleep(1)

    memory = FreeMemory(give_back=give_back_slowly)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memory.run)
        memory.note(MUCH)
        await trio.sleep(free_memory._QUIET * 2)
        memory.note(MUCH)
        await trio.sleep(free_memory._QUIET * 3)
        nursery.cancel_scope.cancel()
    assert len(times) == 2


async def test_where_no_thread_can_be_started_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)
    await give_back()
