"""Waits for the cluster's DNS on real sockets; silent servers are not waited for."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import Sequence

import pytest
from trio.testing import MockClock

from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.install.run.wait_loaded import GONE, LOADED, is_reachable, wait_loaded
from tests.dnsproxy.cluster_dns.test_probing import dnsproxy, with_rcode
from tests.kit import upstream_replies
from tests.kit.faulty_upstream import FaultyUpstream, Step, faulty_upstream, silence
from tests.kit.upstream_replies import NXDOMAIN

other = with_rcode(NXDOMAIN)


class Turning:
    """A callback that changes the answers of the server after some rounds."""

    def __init__(self, server: FaultyUpstream, rounds: int, then: object) -> None:
        self.server = server
        self.rounds = rounds
        self.then = then
        self.seen: list[Presence] = []

    def __call__(self, passed: float, asked: Sequence[ProbeResult]) -> None:
        assert passed >= 0
        self.seen += [one.state for one in asked]
        if len(self.seen) == self.rounds:
            self.server.datagrams = self.then  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("first", "then", "hoped", "before"),
    [(other, dnsproxy, LOADED, Presence.NO), (dnsproxy, other, GONE, Presence.YES)],
    ids=["loaded", "gone"],
)
async def test_it_ends_when_the_server_says_what_is_hoped_for(
    first: object, then: object, hoped: frozenset[Presence], before: Presence, clock: MockClock
) -> None:
    async with faulty_upstream(first) as server:  # type: ignore[arg-type]
        turning = Turning(server, 2, then)
        (asked,) = await wait_loaded([server.endpoint], ["."], hoped, seconds=600, progress=turning)
    assert asked.state in hoped
    assert turning.seen == [before, before]


async def test_it_ends_with_its_time_and_tells_what_was_said_last(clock: MockClock) -> None:
    async with faulty_upstream(other) as server:
        turning = Turning(server, 0, other)
        (asked,) = await wait_loaded([server.endpoint], ["example.org."], LOADED, seconds=0.5, progress=turning)
    assert (asked.state, asked.zone) == (Presence.NO, "example.org.")
    assert turning.seen


async def test_without_time_it_looks_once() -> None:
    async with faulty_upstream(other) as server:
        turning = Turning(server, 0, other)
        await wait_loaded([server.endpoint], ["."], LOADED, seconds=0, progress=turning)
    assert turning.seen == []


async def test_an_address_that_leads_nowhere_is_not_waited_for_beside_one_that_does(clock: MockClock) -> None:
    async with faulty_upstream(dnsproxy) as server, faulty_upstream(silence, silence) as silent:
        asked = await wait_loaded(
            [silent.endpoint, server.endpoint], ["."], LOADED, seconds=600, progress=lambda *_: None
        )
    assert [one.state for one in asked] == [Presence.SILENT, Presence.YES]


async def test_every_zone_has_to_be_loaded() -> None:
    def only_org(asked: bytes) -> list[Step]:
        return dnsproxy(asked) if b"\x03org\0" in asked else [upstream_replies.right(asked, rcode=NXDOMAIN, answers=0)]

    async with faulty_upstream(only_org) as server:
        zones = ["example.org.", "example.net."]
        states = [one.state for one in await wait_loaded([server.endpoint], zones, LOADED, seconds=0, progress=print)]
    assert states == [Presence.YES, Presence.NO]


async def test_who_answers_anything_is_reachable(clock: MockClock) -> None:
    async with faulty_upstream(other) as server, faulty_upstream(silence, silence) as silent:
        assert await is_reachable([silent.endpoint, server.endpoint], ["."])
        assert not await is_reachable([silent.endpoint], ["."])
        assert not await is_reachable([], ["."])
