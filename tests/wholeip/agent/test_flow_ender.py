"""When flows are judged: after each update, and again after a failure."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.kit.wholeip_objects import OLD, READY, WHOLE, ip
from tests.wholeip.agent.test_update import pair
from wholeip.agent.flow_ender import RETRY_SECONDS, FlowEnder
from wholeip.agent.status import AgentStatus
from wholeip.agent.update import DesiredTable, Update
from wholeip.mappings.plan import Plan
from wholeip.ruleset.ended_flows import NewEgress
from wholeip.ruleset.nft_errors import NftFailed, NotPermitted
from wholeip.ruleset.ruleset import Ruleset

TARGETS = [DesiredTable(Plan(), table=f"t{number}") for number in range(4)]
A, B, C, D = (target.ruleset() for target in TARGETS)
FIRST = Update(None, TARGETS[0])
SECOND, THIRD, FOURTH = (Update(before, after, frozenset()) for before, after in pairwise(TARGETS))


class Flows:
    """The flows of a node: remembers by which changes they were judged."""

    def __init__(self) -> None:
        self.judged: list[tuple[Ruleset | None, Ruleset]] = []
        self.egress: list[NewEgress] = []
        self.between: list[list[Ruleset]] = []
        self.failures: list[NftFailed] = []
        self.seconds = 0.0
        self.status = AgentStatus()

    async def end(self, before: Ruleset | None, after: Ruleset, egress: NewEgress, between: Sequence[Ruleset]) -> int:
        await trio.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop(0)
        self.judged.append((before, after))
        self.egress.append(egress)
        self.between.append([*between])
        return 3

    @asynccontextmanager
    async def running(self, **options: bool) -> AsyncIterator[FlowEnder]:
        ender = FlowEnder(self.end, self.status, **options)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ender.run)
            yield ender
            nursery.cancel_scope.cancel()


async def test_each_change_has_the_flows_judged(autojump_clock: MockClock) -> None:
    flows = Flows()
    async with flows.running() as ender:
        ender.note(FIRST)
        await wait_all_tasks_blocked()
        ender.note(SECOND)
        await wait_all_tasks_blocked()
    assert flows.judged == [(None, A), (A, B)]
    assert flows.status.flows_ended == 6


async def test_changes_that_come_meanwhile_are_one(autojump_clock: MockClock) -> None:
    flows = Flows()
    flows.seconds = 1.0
    async with flows.running() as ender:
        ender.note(FIRST)
        await trio.sleep(0.5)
        ender.note(SECOND)
        ender.note(THIRD)
        await trio.sleep(20)
    assert flows.judged == [(None, A), (A, C)]


async def test_an_address_that_came_and_went_meanwhile_has_its_flows_judged(autojump_clock: MockClock) -> None:
    flows, world = Flows(), pair()
    flows.seconds = 1.0
    async with flows.running() as ender:
        ender.note(FIRST)
        await trio.sleep(0.5)
        for address in ("192.0.2.9", "192.0.2.8"):
            world.put_service("older", address, annotations=WHOLE, created=OLD)
            ender.note(world.step())
        await trio.sleep(20)
    ((), (between,)) = flows.between
    assert between.elements["addresses_v4"] == {"192.0.2.9": ""}


async def test_reading_flows_takes_a_part_of_the_time_only(autojump_clock: MockClock) -> None:
    flows = Flows()
    flows.seconds = 1.0
    async with flows.running() as ender:
        for _ in range(50):
            ender.note(SECOND)
            await trio.sleep(1)
    assert len(flows.judged) <= 10


async def test_a_change_that_failed_is_not_forgotten(autojump_clock: MockClock) -> None:
    flows = Flows()
    flows.failures = [NotPermitted("no"), NotPermitted("no")]
    with capture_logs() as logs:
        async with flows.running() as ender:
            ender.note(SECOND)
            await trio.sleep(1)
            ender.note(THIRD)
            await trio.sleep(RETRY_SECONDS)
            ender.note(FOURTH)
            await trio.sleep(RETRY_SECONDS)
    assert flows.judged == [(A, D)]
    assert flows.status.flow_failures == 2
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "flows that no rule allows may continue"
    ]


async def test_what_is_not_done_yet_at_the_end_is_done_then(autojump_clock: MockClock) -> None:
    flows = Flows()
    flows.seconds = 1.0
    async with flows.running() as ender:
        ender.note(FIRST)
        await trio.sleep(2)
        ender.note(SECOND)  # while it rests
    assert flows.judged == [(None, A)]
    assert await ender.finish()
    assert flows.judged == [(None, A), (A, B)]
    assert await ender.finish()
    assert len(flows.judged) == 2, "there is nothing left"


async def test_a_change_whose_flows_are_read_at_the_end_is_not_forgotten(autojump_clock: MockClock) -> None:
    flows = Flows()
    flows.seconds = 1.0
    async with flows.running() as ender:
        ender.note(SECOND)
        await trio.sleep(0.5)
        ender.note(THIRD)
    assert flows.judged == []
    flows.failures = [NotPermitted("no")]
    assert not await ender.finish()
    assert await ender.finish()
    assert flows.judged == [(A, C)]


@pytest.mark.parametrize("connections", [False, True])
async def test_a_mapping_that_comes_has_the_flows_of_its_pod_judged_against_the_cluster(
    connections: bool, autojump_clock: MockClock
) -> None:
    flows, world = Flows(), pair()
    world.put_node("n1", "198.51.100.1", "10.0.0.0/24")
    world.step()
    world.put_service("new", "192.0.2.9", annotations=WHOLE)
    world.put_slice("new", ("10.0.0.9", READY))
    async with flows.running(connections=connections) as ender:
        ender.note(world.step())
        await wait_all_tasks_blocked()
    (egress,) = flows.egress
    assert egress.addresses == {"10.0.0.9": "192.0.2.9"}
    assert egress.connections is connections
    for inside in ("10.0.0.77", "198.51.100.1", "169.254.169.254", "224.0.0.251"):
        assert egress.inside.find(ip(inside))
    assert egress.inside.find(ip("203.0.113.1")) is None
