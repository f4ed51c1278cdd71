"""The mirror: the zones of the primary that holds the Lease, served by this one with the same serials.

The law: a content is one that the holder had, with its serial. So a secondary that changes between the two finds
nothing older here, and what it misses comes with the next serial.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final

import trio

from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.secondary.fetch import Wanted
from dnsproxy.secondary.source import RpzSource
from dnsproxy.secondary.zone_follower import ZoneFollower
from dnsproxy.zone.content import ZoneContent
from dnsproxy.zone.control import parse_control
from dnsproxy.zone.reading import POLICY_TYPES, TABLE_TYPES, Changes, Transfer, TransferRefused, text_of
from dnsproxy.zone.table_zone import APEX
from dnsproxy.zone.tsig_keys import TsigKey
from dnsproxy.zone.zone_records import ZONE, join_row, split_row
from sidecar.loop.slices import in_slices
from sidecar.values.endpoints import Endpoint

_STAR: Final = b"\x01*"


class Mirror:
    """Follows both zones of another primary, which set_holder() names."""

    def __init__(self, published: PublishedZones, *, key: TsigKey | None) -> None:
        self._published = published
        self._key = key
        zones = published.zones
        self._followers = {
            name: ZoneFollower((), Wanted(name, types=types, key=key), take=self._taker(name))
            for name, types in ((zones.name, POLICY_TYPES), (zones.table_name, TABLE_TYPES))
        }

    async def run(self, holder: Endpoint) -> None:
        """Follow the holder until cancelled."""
        zone = self._published.zones.name
        async with trio.open_nursery() as nursery:
            for name, follower in self._followers.items():
                content = self._published.zones.content_of(name)
                if content is not None and content.serial:
                    follower.restore(content.serial)
                follower.set_primaries((RpzSource(zone, holder.host, holder.port),))
                nursery.start_soon(follower.run)

    def notify(self, zone: bytes, serial: int | None) -> bool:
        """A NOTIFY came; whether it is for a zone of ours."""
        follower = self._followers.get(zone)
        if follower is not None:
            follower.notify(serial)
        return follower is not None

    def _taker(self, name: bytes):  # type: ignore[no-untyped-def]
        async def take(transfer: Transfer) -> None:
            published = self._published
            content = published.zones.content_of(name)
            if content is None:
                return
            async with published.changing:
                rows = await in_slices(prepare_rows(content, transfer, by_node=name == published.zones.name))
                # Shielded: rows without their serial would be another version's.
                with trio.CancelScope(shield=True):
                    await in_slices(put_rows(content, rows))
                if name == published.zones.table_name:
                    published.zones.ttl = _ttl_of(content, published.zones.ttl)
                published.commit(name, transfer.serial)

        return take


def prepare_rows(
    content: ZoneContent, transfer: Transfer, *, by_node: bool
) -> Generator[None, None, dict[bytes, bytes | None]]:
    """The rows that a transfer makes, by key, in steps; `by_node`: a key holds a node and its `*.`.

    Raises TransferRefused, and has then changed nothing.
    """
    rows: dict[bytes, bytes | None] = {}
    for owner, changes in transfer.owners.items():
        key = (owner.removeprefix(_STAR) + b"\0") if by_node else owner
        before = rows[key] if key in rows else (None if transfer.whole else content.get(key))
        rows[key] = _changed_row(before, owner, changes)
        yield
    if transfer.whole:
        for key in content.keys():  # noqa: SIM118  # no mapping
            rows.setdefault(key, None)
            yield
    return rows


def put_rows(content: ZoneContent, rows: Mapping[bytes, bytes | None]) -> Generator[None, None, None]:
    """Change a content, in steps."""
    for key, row in rows.items():
        content.put(key, row)
        yield


def _changed_row(row: bytes | None, owner: bytes, changes: Changes) -> bytes | None:
    records = list(split_row(row)) if row is not None else []
    for deleted in changes.deleted:
        record = owner + ZONE + deleted
        if record not in records:
            raise TransferRefused("its difference deletes what is not there")
        records.remove(record)
    return join_row(records + [owner + ZONE + added for added in changes.added])


def _ttl_of(content: ZoneContent, known: int) -> int:
    row = content.get(APEX)
    try:
        return parse_control(text_of(record[len(ZONE) :] for record in split_row(row))).ttl if row else known
    except ValueError:
        return known
