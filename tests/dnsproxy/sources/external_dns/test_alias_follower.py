"""The follower of aliases: when it looks up, and how a changed row of the table reaches an alias."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.addresses import PublicRecord
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.sources.external_dns.alias_follower import AliasFollower
from dnsproxy.sources.external_dns.alias_schedule import pause_of
from tests.dnsproxy.sources.external_dns.objects import record
from tests.dnsproxy.sources.external_dns.test_dns_endpoint_source import DB, FOUND, MOVED, SHOP, World

TABLE: Any = HostTable
"""It is not read."""
FASTER: Final = 100
"""Minutes have to fit into the deadline of a test."""


async def passes(seconds: float) -> None:
    """Let this many seconds of the default pace pass."""
    await trio.sleep(seconds / FASTER)


@dataclass
class Upstreams:
    """The records of names; `None` for silence, a name without an entry does not exist."""

    records: dict[str, PublicRecord | None] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)
    silence: float = 0.02
    now: int = 0
    most: int = 0

    async def resolve(self, name: str) -> PublicRecord | None:
        self.asked.append((name, trio.current_time()))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            found = self.records.get(name, PublicRecord())
            if found is None:
                await trio.sleep(self.silence)
            return found
        finally:
            self.now -= 1

    def times(self, name: str) -> list[float]:
        return [time for asked, time in self.asked if asked == name]


@dataclass
class Followed:
    world: World
    upstreams: Upstreams
    follower: AliasFollower

    def judge(self, hostname: str) -> None:
        """The keeper judged a row again, and swapped the table."""
        self.follower.judged(Host(hostname, Reach.NAME, ()), Verdict(None, (), ()), before=())
        self.follower.published(TABLE)


@asynccontextmanager
async def following(**records: PublicRecord | None) -> AsyncIterator[Followed]:
    """With records by the first label of names below example.net."""
    world = World()

    def settle() -> None:
        world.settle()

    upstreams = Upstreams({f"{label}.example.net": found for label, found in records.items()})
    follower = AliasFollower(
        world.source, resolve=upstreams.resolve, wake=settle, pause=lambda ttl: pause_of(ttl) / FASTER
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.run)
        yield Followed(world, upstreams, follower)
        nursery.cancel_scope.cancel()


async def test_an_alias_has_its_address_at_once_and_follows_it_after_its_ttl(autojump_clock: MockClock) -> None:
    async with following(lb=FOUND) as followed:
        followed.world.put("shop/a", record(DB, "CNAME", "lb.example.net"))
        await passes(20)
        assert followed.world.targets == {DB: "192.0.2.1,2001:db8::1"}
        followed.upstreams.records["lb.example.net"] = MOVED
        await passes(30)
        assert followed.world.targets == {DB: "192.0.2.1,2001:db8::1"}
        await passes(30)
        assert followed.world.targets == {DB: "192.0.2.2"}


@pytest.mark.parametrize(
    ("ttl", "pause"), [(0, 30), (60, 60), (86_400, 300), (None, 30)], ids=["no time", "a minute", "a day", "no record"]
)
async def test_names_are_looked_up_again_at_a_bounded_pace(
    autojump_clock: MockClock, ttl: int | None, pause: float
) -> None:
    async with following(lb=FOUND._replace(ttl=ttl)) as followed:
        followed.world.put("shop/a", record(DB, "CNAME", "lb.example.net"))
        await passes(1_000)
        first, second, *_ = followed.upstreams.times("lb.example.net")
        assert (second - first) * FASTER == pytest.approx(pause, abs=10)


async def test_silence_changes_nothing(autojump_clock: MockClock) -> None:
    async with following(lb=FOUND) as followed:
        followed.world.put("shop/a", record(DB, "CNAME", "lb.example.net"))
        await passes(20)
        followed.upstreams.records["lb.example.net"] = None
        await passes(3_600)
        assert followed.world.targets == {DB: "192.0.2.1,2001:db8::1"}
        assert followed.world.reasons == []
        followed.upstreams.records["lb.example.net"] = MOVED
        await passes(40)
        assert followed.world.targets == {DB: "192.0.2.2"}


async def test_a_row_of_the_table_that_changes_reaches_its_aliases(autojump_clock: MockClock) -> None:
    async with following() as followed:
        followed.world.put("shop/a", record(DB, "CNAME", "shop.org"))
        await passes(20)
        followed.world.table["shop.org"] = SHOP
        followed.judge("other.org")
        assert followed.world.targets == {DB: "own"}
        followed.judge("shop.org")
        assert followed.world.targets == {DB: None}
        assert followed.follower.names == 0
        del followed.world.table["shop.org"]
        followed.judge("*.org")
        assert followed.world.targets == {DB: "own"}


async def test_a_deleted_object_ends_its_look_ups(autojump_clock: MockClock) -> None:
    async with following(lb=FOUND) as followed:
        followed.world.put("shop/a", record(DB, "CNAME", "lb.example.net"))
        await passes(20)
        followed.world.delete("shop/a")
        await passes(1_000)
        assert len(followed.upstreams.asked) == 1
        assert followed.follower.names == 0


async def test_a_silent_nameserver_delays_the_names_of_its_own_namespace(autojump_clock: MockClock) -> None:
    async with following(lb=FOUND) as followed:
        followed.upstreams.silence = 2.0
        slow = [record(f"s{number}.org", "CNAME", f"s{number}.example.net") for number in range(900)]
        followed.upstreams.records |= {f"s{number}.example.net": None for number in range(900)}
        followed.world.put("slow/many", *slow)
        await trio.sleep(5)
        followed.world.put("shop/a", record(DB, "CNAME", "lb.example.net"))
        await trio.sleep(1)
        assert followed.world.targets[DB] == "192.0.2.1,2001:db8::1"
        assert followed.upstreams.most <= 5


async def test_names_without_a_pause_are_looked_up_at_most_twenty_a_second(autojump_clock: MockClock) -> None:
    async with following() as followed:
        many = [record(f"s{number}.org", "CNAME", f"s{number}.example.net") for number in range(900)]
        followed.world.put("shop/many", *many)
        await trio.sleep(10)
        assert len(followed.upstreams.asked) <= 201
        assert len(followed.upstreams.asked) > 100
        assert followed.follower.names == 900


async def test_rows_that_affect_no_alias_are_not_kept(autojump_clock: MockClock) -> None:
    async with following() as followed:
        for number in range(1_000):
            followed.follower.judged(Host(f"h{number}.org", Reach.NAME, ()), Verdict(None, (), ()), before=())
        assert not followed.follower._judged
        await wait_all_tasks_blocked()


def test_the_name_of_another_claim_is_no_alias_of_the_source() -> None:
    """A guard for the tests' own table."""
    world = World()
    world.table["shop.org"] = Claim(
        "shop.org", Reach.NAME, Origin("DNSEndpoint", "x", "web"), Terms(target="192.0.2.3")
    )
    world.put("shop/a", record(DB, "CNAME", "shop.org"))
    assert world.targets == {DB: "192.0.2.3"}
