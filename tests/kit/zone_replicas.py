"""A replica in this process that follows a scripted primary, and the answers that such a primary gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Judgement
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.replica.replica import Replica
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.replica.settings import SOURCE, ReplicaSettings
from dnsproxy.secondary.source import RpzSource
from dnsproxy.zone.content import Difference, Piece
from dnsproxy.zone.control import FORMAT, Control, format_control
from dnsproxy.zone.requests import format_notify
from dnsproxy.zone.rows import format_row
from dnsproxy.zone.table_zone import APEX, owner_of, text_records
from dnsproxy.zone.transfer import ZoneVersion, incremental, messages
from dnsproxy.zone.tsig_keys import TsigKey
from dnsproxy.zone.zone_records import row_count, row_records
from sidecar.values.endpoints import Endpoint
from tests.kit.dns_server import wait_until
from tests.kit.messages import addresses_of
from tests.kit.zone_sides import TABLE_ZONE, ZONE

ANSWER: Final = 0x8400


def piece_of(owner: bytes, text: bytes) -> Piece:
    """The TXT records of an owner."""
    row = text_records(owner, text, ttl=5)
    return Piece(row_count(row), row_records(row))


def row_piece(hostname: str, address: str) -> Piece:
    claim = Claim(hostname, Reach.NAME, Origin("Ingress", "app", "shop"))
    host = Host(hostname, Reach.NAME, (address,))
    text = format_row(hostname, [Judgement(host, Verdict(claim, (address,), (), contenders=(claim,)))])
    assert text is not None
    return piece_of(owner_of(hostname, TABLE_ZONE), text)


CONTROL: Final = piece_of(APEX, format_control(Control(FORMAT, 5)))
APP, NEW = row_piece("app.example.org", "192.0.2.1"), row_piece("new.example.org", "192.0.2.2")


def replies(asked: bytes, pieces: Iterable[Piece], *, zone: bytes = TABLE_ZONE, flags: int = ANSWER) -> list[bytes]:
    """Messages with these records that answer a request; `zone` stands in their question."""
    rtype = asked[12 + len(TABLE_ZONE) + 1]
    version = ZoneVersion(zone, 1, ttl=5)
    return [asked[:2] + body for body in messages(version, pieces, rtype=rtype, reply=flags)]


def soa(serial: int) -> Piece:
    return ZoneVersion(TABLE_ZONE, serial, ttl=5).soa


def whole(asked: bytes, serial: int, *pieces: Piece, last: int | None = None) -> list[bytes]:
    """All of a zone."""
    return replies(asked, [soa(serial), *pieces, soa(serial if last is None else last)])


def increment(
    asked: bytes, old: int, new: int, *, deleted: Iterable[Piece] = (), added: Iterable[Piece] = ()
) -> list[bytes]:
    version = ZoneVersion(TABLE_ZONE, new, ttl=5)
    return replies(asked, incremental(version, Difference(tuple(deleted), tuple(added)), since=old))


def is_axfr(asked: bytes) -> bool:
    return asked[12 + len(TABLE_ZONE) + 1] == Type.AXFR


@dataclass
class Following:
    """A replica that runs."""

    replica: Replica
    keeper: TableKeeper
    tables: list[HostTable]

    def notify(self, serial: int) -> None:
        reply = self.replica.notify(format_notify(TABLE_ZONE, serial=serial, ttl=5, ident=9))
        assert reply is not None

    def addresses(self, hostname: str) -> tuple[str, ...] | None:
        return addresses_of(self.tables[-1], hostname) if self.tables else None

    async def wait_for(self, serial: int) -> None:
        await wait_until(lambda: self.replica.status.serial == serial)

    async def fail_again(self) -> str:
        """Have it look again, and wait until it failed. Returns the fault."""
        before = self.replica.status.failures
        self.notify((self.replica.status.serial or 0) + 1)
        await wait_until(lambda: self.replica.status.failures > before and bool(self.replica.status.fault))
        return self.replica.status.fault


@asynccontextmanager
async def following(
    *primaries: Endpoint, key: TsigKey | None = None, snapshot: Path | None = None
) -> AsyncIterator[Following]:
    sources = tuple(RpzSource(ZONE, one.host, one.port) for one in primaries)
    registry = ReplicaRegistry(TABLE_ZONE)
    tables: list[HostTable] = []
    keeper = TableKeeper(registry, ttl=5, publish=tables.append, sources=[SOURCE])
    replica = Replica(ReplicaSettings(sources, key), registry, snapshot=snapshot)
    await replica.load(keeper)
    await keeper.swap()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(replica.run)
        yield Following(replica, keeper, tables)
        nursery.cancel_scope.cancel()
