"""Hubs: replicas that are primaries too. Whatever is slow, lost or restarted, each server has what its serial says.

The model: the first primary's versions, by serial. Every table that a replica shows and every zone that a hub serves is
one of them under its own serial; no server goes back while it lives; and in the end all have the newest.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, TypeVar

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsproxy.answers.table import HostTable
from dnsproxy.dns import wire
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Query
from dnsproxy.hostnames import keeper as keeper_module
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.primary import feeder as feeder_module
from dnsproxy.primary.primary import Primary
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.primary.zone_server import ZoneServer, ZoneTransfer
from dnsproxy.replica.replica import Replica, _transfer_of
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.replica.saved_table import format_saved, parse_saved
from dnsproxy.replica.settings import SOURCE, ReplicaSettings
from dnsproxy.secondary import zone_follower
from dnsproxy.secondary.fetch import Current, FetchFailed, Wanted
from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.reading import Transfer, TransferReader
from dnsproxy.zone.requests import format_notify, format_request
from dnsproxy.zone.serials import following, is_newer
from sidecar.loop.slices import in_slices
from tests.kit.zone_sides import LOOPBACK, TABLE_ZONE, ZONE, PrimarySide, Shown, show

NAME: Final = "rpz.example.org"
FIRST: Final = "first"
REST: Final = 600.0
"""Seconds of quiet: some times the refresh interval, with NOTIFYs lost."""
STAR: Final = {"hub": (FIRST,), "one": ("hub",), "two": ("hub", FIRST)}
CHAIN: Final = {"hub": (FIRST,), "middle": ("hub",), "last": ("middle", "hub")}
HUBS: Final = ("hub", "middle")
Result = TypeVar("Result")


class Server:
    """A replica from its start to its end; a hub serves its zones on."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.registry = ReplicaRegistry(TABLE_ZONE)
        self.table = HostTable()
        self.keeper = TableKeeper(self.registry, ttl=5, publish=self._publish, sources=[SOURCE])
        sources = tuple(RpzSource(ZONE, one) for one in world.sources[name])
        self.replica = Replica(ReplicaSettings(sources), self.registry, snapshot=None)
        self.primary: Primary | None = None
        if name in HUBS:
            self.primary = Primary(
                RpzSettings(ZONE),
                self.keeper,
                ttl=5,
                is_synced=lambda: self.restored or not self.keeper.waiting_for,
                given=lambda: self.registry.serial,
            )
        self.restored = False
        self.scope = trio.CancelScope()
        self._highest: int | None = None

    async def run(self, saved: bytes | None) -> None:
        with self.scope:
            await self.replica.load(self.keeper)
            if saved is not None:
                found = parse_saved(saved, zone=NAME)
                self.registry.stage(
                    await in_slices(self.registry.prepare(await in_slices(_transfer_of(found, TABLE_ZONE))))
                )
                self.replica._follower.restore(found.serial)
                self.restored = True
            await self.keeper.swap()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.keeper.run)
                nursery.start_soon(self.replica.run)
                if self.primary is not None:
                    nursery.start_soon(self.primary.run, None)
                    nursery.start_soon(self.world.tell, self.name, self.primary.published)

    def _publish(self, table: HostTable) -> None:
        self.table = table
        serial = self.registry.serial
        if serial is None:
            return
        assert show(table) == self.world.tables[serial], f"{self.name} shows another table at serial {serial}"
        assert self._highest is None or serial == self._highest or is_newer(serial, self._highest), "it went back"
        self._highest = serial


class World:
    """The first primary, the replicas by name, and the network between them."""

    def __init__(self, sources: Mapping[str, tuple[str, ...]], start: int, nursery: trio.Nursery) -> None:
        self.sources = sources
        self.tables: dict[int, Shown] = {}
        """What the first primary had, by serial."""
        self.zones: dict[int, dict[bytes, bytes | None]] = {}
        self.claims: dict[str, tuple[Claim, ...]] = {}
        self.servers: dict[str, Server] = {}
        self.saved: dict[str, bytes] = {}
        self.chances = random.Random(start)  # noqa: S311
        self.slowness = 0.0
        self.losing = False
        self.cutting: set[str] = set()
        self._nursery = nursery
        self._first = self._make_first(start)
        self._scope = trio.CancelScope()

    def _make_first(self, start: int) -> PrimarySide:
        first = PrimarySide(start=start)
        tell = first.zones.tell

        def note() -> None:
            self.tables[first.serial], self.zones[first.serial] = show(first.table), rows_of(first.zones)
            tell()

        first.zones.tell = note  # type: ignore[method-assign]
        return first

    async def start(self) -> None:
        await self.publish()
        self._nursery.start_soon(self.tell, FIRST, self._first.zones)
        for name in self.sources:
            self.begin(name, None)

    def begin(self, name: str, saved: bytes | None) -> None:
        if name not in self.servers:
            self.servers[name] = Server(self, name)
            self._nursery.start_soon(self.servers[name].run, saved)

    async def publish(self) -> None:
        """The next version of the first primary, which is never slow."""
        slowness, self.slowness = self.slowness, 0.0
        await self._first.swap()
        self.slowness = slowness

    async def restart_first(self, later: int) -> None:
        """Another process reads the same objects; its serials begin later, and its journal is empty."""
        self._scope.cancel()
        self._first = self._make_first(following(self._first.serial, later))
        for key, claims in self.claims.items():
            self._first.registry.replace("hosts", key, claims)
        await self.publish()
        self._nursery.start_soon(self.tell, FIRST, self._first.zones)

    async def tell(self, name: str, published: PublishedZones) -> None:
        """Check each version that a server commits, and send NOTIFY once to the replicas that have it as a source."""
        scope = trio.CancelScope()
        if name == FIRST:
            self._scope = scope
        with scope:
            while True:
                committed, version = published.committed, published.version(TABLE_ZONE)
                if version is not None:
                    assert rows_of(published) == self.zones[version.serial], f"{name} serves other rows"
                    message = format_notify(TABLE_ZONE, serial=version.serial, ttl=5, ident=7)
                    for one in [each for each in self.servers.values() if name in self.sources[each.name]]:
                        if not self.losing and self.chances.random() < 0.8:
                            one.replica.notify(message)
                await committed.wait()

    async def fetch(self, source: RpzSource, wanted: Wanted) -> Transfer | Current:
        """In place of secondary.fetch: the real messages over no socket."""
        await trio.sleep(self.chances.choice([0.0, 0.001, 0.02]))
        query = wire.scan_query(format_request(wanted.name, serial=wanted.serial, ident=7))
        assert isinstance(query, Query)
        answer = self._zone_server(source.host).answer_stream(query, client=LOOPBACK)
        reader = TransferReader(wanted.name, known=wanted.serial)
        if isinstance(answer, ZoneTransfer):
            async with aclosing(answer.messages()) as messages:
                async for message in messages:
                    await trio.sleep(self.slowness)
                    if source.host in self.cutting:
                        raise FetchFailed("it closed the connection amid the transfer")
                    await in_slices(reader.read(message))
        else:
            await in_slices(reader.read(answer))
        if reader.is_current and reader.serial is not None:
            return Current(reader.serial)
        return reader.transfer()

    def _zone_server(self, name: str) -> ZoneServer:
        if name == FIRST:
            return self._first.server
        server = self.servers.get(name)
        if server is None or server.primary is None:
            raise FetchFailed("it cannot be reached")
        return server.primary.server

    async def play(self, step: tuple[Any, ...]) -> None:
        match step:
            case "change", key, address:
                origin = Origin("hosts file", key)
                claim = Claim(f"{key}.example.org", Reach.NAME, origin, Terms((address,)))
                self.claims[key] = (claim,) if address else ()
                self._first.registry.replace("hosts", key, self.claims[key])
                await self.publish()
            case "burst", pauses:
                for number, pause in enumerate(pauses):
                    await self.play(("change", "d", f"192.0.2.{number % 2 + 3}"))
                    await trio.sleep(pause)
            case "wait", seconds:
                await trio.sleep(seconds)
            case "slow", seconds:
                self.slowness = seconds
            case "lose", losing:
                self.losing = losing
            case "cut", name:
                self.cutting ^= {name}
            case "restart first", later:
                await self.restart_first(later)
            case _:
                await self._play_server(step)

    async def _play_server(self, step: tuple[Any, ...]) -> None:
        name = tuple(self.sources)[step[1]]
        server = self.servers.get(name)
        match step[0]:
            case "save" if server is not None and server.registry.serial is not None:
                registry, versions = server.registry, server.registry.versions
                assert registry.serial is not None
                saved = b"".join(await in_slices(format_saved(NAME, registry.serial, registry.texts())))
                if registry.versions == versions:
                    self.saved[name] = saved
            case "end" if server is not None:
                del self.servers[name]
                server.scope.cancel()
            case "begin":
                self.begin(name, self.saved.get(name) if step[2] else None)
            case _:
                pass

    async def check_end(self) -> None:
        """All run, and nothing is lost but every NOTIFY: each has the newest version, and is content."""
        self.losing, self.slowness, self.cutting = True, 0.0, set()
        for name in self.sources:
            self.begin(name, self.saved.get(name))
        await trio.sleep(REST)
        serial = self._first.serial
        for name, server in self.servers.items():
            assert (name, server.registry.serial, server.replica.status.fault) == (name, serial, "")
            assert show(server.table) == self.tables[serial]
            if server.primary is not None:
                version = server.primary.published.version(TABLE_ZONE)
                assert (name, version and version.serial) == (name, serial)


def rows_of(published: PublishedZones) -> dict[bytes, bytes | None]:
    table = published.zones.table
    return {key: table.get(key) for key in table.keys()}  # noqa: SIM118  # no mapping


async def play(sources: Mapping[str, tuple[str, ...]], start: int, steps: list[tuple[Any, ...]]) -> None:
    async with trio.open_nursery() as nursery:
        world = World(sources, start, nursery)

        async def slowly(work: Generator[None, None, Result]) -> Result:
            await trio.sleep(world.slowness * world.chances.random())
            found = await in_slices(work)
            await trio.sleep(world.slowness * world.chances.random())
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(zone_follower, "fetch", world.fetch)
            patch.setattr(keeper_module, "in_slices", slowly)
            patch.setattr(feeder_module, "in_slices", slowly)
            await world.start()
            for step in steps:
                await world.play(step)
            await world.check_end()
        nursery.cancel_scope.cancel()


STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from("abc"), st.sampled_from(["", "192.0.2.1", "192.0.2.2"])),
        st.tuples(st.just("change"), st.sampled_from("abc"), st.sampled_from(["", "192.0.2.1", "192.0.2.2"])),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 0.03, 0.5, 15.0, 90.0])),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 0.03, 0.5, 15.0, 90.0])),
        st.tuples(st.just("burst"), st.lists(st.sampled_from([0.01, 0.03, 0.1]), min_size=2, max_size=12)),
        st.tuples(st.just("slow"), st.sampled_from([0.0, 0.02, 0.3])),
        st.tuples(st.just("lose"), st.booleans()),
        st.tuples(st.just("cut"), st.sampled_from([FIRST, *HUBS])),
        st.tuples(st.just("restart first"), st.sampled_from([1, 3, 1 << 16])),
        st.tuples(st.just("save"), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 2)),
        st.tuples(st.just("begin"), st.integers(0, 2), st.booleans()),
    ),
    min_size=5,
    max_size=30,
)


@settings(max_examples=40)
@given(st.sampled_from([STAR, CHAIN]), st.sampled_from([1, 1 << 31, (1 << 32) - 2]), STEPS)
def test_after_any_steps_all_have_the_newest_version_and_none_ever_had_another_under_its_serial(
    sources: Mapping[str, tuple[str, ...]], start: int, steps: list[tuple[Any, ...]]
) -> None:
    trio.run(partial(play, sources, start, steps), clock=trio.testing.MockClock(autojump_threshold=0))
