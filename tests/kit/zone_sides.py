"""A primary and a replica with everything but sockets: keepers, feeder, registry, and the messages between them.

The law: the messages are those that the real ZoneServer sends and the real TransferReader reads; a transfer may be cut.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import trio
import trio.testing

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns import names, wire
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Query
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.ownership import OwnershipSettings
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.primary.feeder import ZoneFeeder
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.primary.zone_server import ZoneServer, ZoneTransfer
from dnsproxy.replica.replica import _transfer_of
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.replica.saved_table import format_saved, parse_saved
from dnsproxy.zone.building import Zones
from dnsproxy.zone.reading import Transfer, TransferReader, TransferRefused
from dnsproxy.zone.requests import format_request
from dnsproxy.zone.serials import following
from dnsproxy.zone.table_zone import table_zone
from sidecar.loop.slices import in_slices

ZONE: Final = names.to_wire("rpz.example.org")
TABLE_ZONE: Final = table_zone(ZONE)
LOOPBACK: Final = "127.0.0.1"

Shown = tuple[Any, ...]


def show(table: HostTable) -> Shown:
    """All that answers can depend on, for comparison: a published table's own dicts are used again."""
    return (
        {name: _answers(one) for name, one in table.exact.items()},
        {name: tuple(one and _answers(one) for one in pair) for name, pair in table.wildcards.items()},
        dict(table.above),
        frozenset(table.never),
        table.closed,
        table.unready,
        table.forwarded,
        table.leads.balancers,
        table.ttl,
        table.conditional,
    )


def _answers(one: Answers) -> tuple[Any, ...]:
    return one.addresses, one.service, one.claimed, {rtype: records.octets for rtype, records in one.by_type.items()}


class CountingSerials:
    """Serials one by one from `start` on."""

    def __init__(self, start: int) -> None:
        self.start = start

    def may_publish(self) -> bool:
        return True

    async def next(self, after: int) -> int:
        await trio.lowlevel.checkpoint()
        return following(after) if after else self.start


class PrimarySide:
    """A primary from its start on, made inside of a loop. `shown`: gets every table that it publishes."""

    def __init__(
        self,
        *,
        start: int = 1,
        ttl: int = 5,
        targets: Targets | None = None,
        guards: Guards | None = None,
        hold: float = 0.0,
        ownership: OwnershipSettings | None = None,
        shown: Callable[[Shown], None] = lambda _: None,
        settings: RpzSettings = RpzSettings(ZONE),  # noqa: B008  # a frozen value
    ) -> None:
        self.registry = Registry(
            targets=targets or Targets(), guards=guards or Guards(), ownership=ownership, holds=Holds(hold)
        )
        self.keeper = TableKeeper(self.registry, ttl=ttl, publish=self._publish, sources=[])
        self.zones = PublishedZones(Zones(settings.zone, wildcards=settings.wildcards, triggers=settings.triggers))
        self.server = ZoneServer(self.zones, settings)
        self.feeder = ZoneFeeder(
            self.zones, self.registry, ttl=ttl, serials=CountingSerials(start), is_synced=lambda: True
        )
        self.verdicts: dict[tuple[str, Reach], Verdict] = {}
        """What was judged last of each row: with holds, judging again may come to another verdict."""
        self.keeper.observers += [self.feeder, self]
        self.table = HostTable()
        self._shown = shown

    @property
    def serial(self) -> int:
        return self.zones.zones.serial

    async def swap(self) -> None:
        """Judge what was touched, and publish it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.feeder.run)
            await self.keeper.swap()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    async def messages(self, *, since: int | None, zone: bytes = TABLE_ZONE, stream: bool = True) -> list[bytes]:
        """What a secondary with this serial gets; None: one without any."""
        query = wire.scan_query(format_request(zone, serial=since, ident=7, datagram=not stream))
        assert isinstance(query, Query)
        if not stream:
            replies: list[bytes] = []
            self.server.answer_datagram(query, client=LOOPBACK, reply=replies.append)
            return replies
        answer = self.server.answer_stream(query, client=LOOPBACK)
        return [message async for message in answer.messages()] if isinstance(answer, ZoneTransfer) else [answer]

    def judged(self, host: Host, verdict: Verdict, *, before: tuple[str, ...]) -> None:  # noqa: ARG002
        """See TableObserver."""
        self.verdicts[host.hostname, host.reach] = verdict

    def begin_whole(self) -> None:
        """See TableObserver."""
        self.verdicts.clear()

    def published(self, table: HostTable) -> None:
        """See TableObserver."""

    def _publish(self, table: HostTable) -> None:
        self.table = table
        self._shown(show(table))


@dataclass
class ReplicaSide:
    """A replica from its start on, made inside of a loop."""

    shown: Callable[[Shown], None] = lambda _: None
    registry: ReplicaRegistry = field(default_factory=lambda: ReplicaRegistry(TABLE_ZONE))
    serial: int | None = None
    table: HostTable = field(default_factory=HostTable)
    fallbacks: int = 0
    """Differences that were refused."""

    def __post_init__(self) -> None:
        self.keeper = TableKeeper(self.registry, ttl=5, publish=self._publish, sources=[])

    async def load(self, saved: list[bytes]) -> None:
        """Start with a saved table."""
        found = parse_saved(b"".join(saved), zone="rpz.example.org")
        await self._take(await in_slices(_transfer_of(found, TABLE_ZONE)))

    async def save(self) -> list[bytes]:
        assert self.serial is not None
        return await in_slices(format_saved("rpz.example.org", self.serial, self.registry.texts()))

    async def refresh(self, primary: PrimarySide, *, cut: int | None = None, datagram: bool = False) -> None:
        """Ask for what is new; `cut`: the connection ends after so many messages."""
        try:
            await self._fetch(primary, since=self.serial, cut=cut, datagram=datagram)
        except TransferRefused:
            if cut is not None:
                return
            self.fallbacks += 1
            await self._fetch(primary, since=None, cut=None, datagram=False)

    async def _fetch(self, primary: PrimarySide, *, since: int | None, cut: int | None, datagram: bool) -> None:
        datagram = datagram and since is not None
        reader = TransferReader(TABLE_ZONE, known=since, datagram=datagram)
        for message in itertools.islice(await primary.messages(since=since, stream=not datagram), cut):
            await in_slices(reader.read(message))
        if reader.needs_stream:
            await self._fetch(primary, since=since, cut=cut, datagram=False)
        elif not reader.is_current:
            await self._take(reader.transfer())

    async def _take(self, transfer: Transfer) -> None:
        version = await in_slices(self.registry.prepare(transfer))
        taken = self.registry.stage(version)
        await self.keeper.swap()
        assert taken.is_set()
        self.serial = transfer.serial

    def _publish(self, table: HostTable) -> None:
        self.table = table
        self.shown(show(table))
