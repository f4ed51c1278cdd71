"""Who may write, and what is noted meanwhile; test_reconciler.py has the table between changes and comparisons."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from tests.kit.wholeip_kernel import FakeKernel
from wholeip.agent.status import AgentStatus
from wholeip.agent.written_table import WrittenTable
from wholeip.ruleset.differences import Difference
from wholeip.ruleset.nft_errors import Busy
from wholeip.ruleset.ruleset import TABLE, Transaction, make_ruleset

ADDED = Transaction(TABLE, adds={"whole_v4": {"192.0.2.1": "10.0.0.1"}})
FIRST = Difference("whole_v4", "192.0.2.1", None, "10.0.0.1")
SECOND = Difference("whole_v6", "192.0.2.1", None, "10.0.0.1")


def written(*failures: Busy) -> WrittenTable:
    return WrittenTable(FakeKernel(make_ruleset([]), failures=[*failures]), AgentStatus())


async def test_slices_give_way_as_long_as_something_is_written(autojump_clock: MockClock) -> None:
    table = written()

    async def write() -> None:
        async with table.writing:
            await trio.sleep(5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.sleep(1)
        await table.give_way()
        assert trio.current_time() == pytest.approx(5)
    await table.give_way()
    assert not table.writing.locked()


async def test_what_is_written_while_it_is_noted_is_left_out() -> None:
    table = written()
    table.begin_noting()
    assert table.unwritten([FIRST, SECOND]) == [FIRST, SECOND]
    with capture_logs():
        await table.apply(ADDED)
    assert table.unwritten([FIRST, SECOND]) == [SECOND]
    assert table.is_noting
    table.end_noting()
    assert not table.is_noting


async def test_what_may_be_written_is_noted_too_and_makes_the_rest_uncertain() -> None:
    table = written(Busy("busy"))
    table.begin_noting()
    with pytest.raises(Busy):
        await table.apply(ADDED)
    assert table.unwritten([FIRST, SECOND]) == [SECOND]
    assert table.uncertain
    assert not table.is_noting
