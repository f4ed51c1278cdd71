"""The log of the table's changes: a line a second at most, and nothing is left out of its numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from structlog.testing import capture_logs

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Origin
from dnsproxy.hostnames.table_changes import SwapChanges, TableChange
from dnsproxy.serve.change_log import PACE, ChangeLog

WEB = Origin("Ingress", "web", "shop")
ROUNDING = 1e-6


def swap(*names: str, added: int = 0) -> SwapChanges:
    """What a swap says that added names."""
    first = [TableChange(7.0, name, Reach.NAME, "added", WEB, None, None) for name in names]
    return SwapChanges({"added": added or len(names), "changed": 0, "removed": 0}, first)


@asynccontextmanager
async def running() -> AsyncIterator[tuple[ChangeLog, list[Any]]]:
    log = ChangeLog()
    with capture_logs() as lines:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.run)
            await trio.testing.wait_all_tasks_blocked()
            yield log, lines
            nursery.cancel_scope.cancel()


async def test_a_change_after_a_quiet_second_is_logged_at_once(autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock
    async with running() as (log, lines):
        for name in ("a.example.org", "b.example.org"):
            log.note(swap(name))
            await trio.testing.wait_all_tasks_blocked()
            assert lines[-1]["names"] == [f"+ {name} (Ingress shop/web)"]
            assert (lines[-1]["added"], lines[-1]["more"], lines[-1]["swaps"]) == (1, 0, 1)
            await trio.sleep(PACE + ROUNDING)
    assert len(lines) == 2


async def test_a_hundred_swaps_a_second_are_a_line_a_second_with_all_their_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    assert autojump_clock
    async with running() as (log, lines):
        for number in range(1_000):
            log.note(swap(f"a{number}.example.org"))
            await trio.sleep(0.01)
        await trio.sleep(PACE + ROUNDING)
    assert 10 <= len(lines) <= 12
    assert all(len(line["names"]) <= 10 for line in lines)
    assert sum(line["added"] for line in lines) == sum(line["swaps"] for line in lines) == 1_000
    assert sum(len(line["names"]) + line["more"] for line in lines) == 1_000


async def test_a_swap_of_many_names_has_ten_of_them() -> None:
    async with running() as (log, lines):
        log.note(swap(*(f"a{number}.example.org" for number in range(10)), added=2_000))
        await trio.testing.wait_all_tasks_blocked()
        assert (lines[0]["added"], len(lines[0]["names"]), lines[0]["more"]) == (2_000, 10, 1_990)


async def test_what_is_left_when_the_program_ends_is_logged(autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock
    async with running() as (log, lines):
        log.note(swap("a.example.org"))
        await trio.testing.wait_all_tasks_blocked()
        log.note(swap("b.example.org"))
        log.note(swap("c.example.org"))
    assert [line["swaps"] for line in lines] == [1, 2]
