"""The replica: follows the table zone of a primary, and keeps what it has on disk.

The law: a thin shell over zone_follower.py and replica_registry.py. A version is in the table before the next one is
fetched, and the last one stays while no primary answers, also over a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.dns.names import format_wire
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.replica.replica_registry import ReplicaRegistry
from dnsproxy.replica.saved_table import SavedTable, SavedTableRefused, format_saved, read_saved, write_saved
from dnsproxy.replica.settings import SOURCE, ReplicaSettings
from dnsproxy.secondary.fetch import Wanted
from dnsproxy.secondary.zone_follower import ZoneFollower, ZoneStatus
from dnsproxy.zone.reading import Changes, Transfer, TransferRefused, records_of
from dnsproxy.zone.requests import answer_notify
from dnsproxy.zone.rows import parse_row
from dnsproxy.zone.table_zone import APEX, ROW_TTL, owner_of, table_zone, text_records
from sidecar.kubernetes.errors import ServerTrouble
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from sidecar.loop.slices import in_slices

_SAVE_PAUSE: Final = 5.0
"""Seconds between two writes of the file, at least."""
_LAST_SAVE: Final = 2.0
"""Seconds for the save at the end of the program."""
_SAVE_FACTOR: Final = 20
"""The pause is also this multiple of the time that a write took."""


def table_zone_of(settings: ReplicaSettings) -> bytes:
    """The zone that a replica loads."""
    return table_zone(settings.primaries[0].zone)


class Replica:
    """Follows a primary for the keeper of `registry`."""

    def __init__(self, settings: ReplicaSettings, registry: ReplicaRegistry, *, snapshot: Path | None) -> None:
        self.restored: float | None = None
        """When the table that this process started with was saved; seconds since the epoch."""
        self._registry = registry
        self._keeper: TableKeeper | None = None
        self._zone = table_zone_of(settings)
        self._snapshot = snapshot
        self._saved: int | None = None
        self._warned = False
        self._changed = trio.Event()
        self._follower = ZoneFollower(
            settings.primaries, Wanted(self._zone, key=settings.key), take=self._take, on_current=self._note_current
        )
        self._log = structlog.get_logger("dnsproxy.replica")

    @property
    def zone(self) -> bytes:
        """The name of the loaded zone, in wire form."""
        return self._zone

    @property
    def status(self) -> ZoneStatus:
        """The status of the zone."""
        return self._follower.status

    @property
    def source(self) -> FollowerStatus:
        """The same in the terms of the other sources of a table."""
        status = self.status
        return FollowerStatus(
            "primary",
            FollowerState.RETRYING if status.fault else FollowerState.WATCHING,
            ServerTrouble(status.fault) if status.fault else None,
            synced=self._registry.serial is not None,
            objects=self._registry.store.hostnames(),
            contact=status.confirmed,
            contact_time=status.confirmed_time,
            synced_time=status.confirmed_time,
            events=status.transfers,
            errors=Counter({"primary": status.failures} if status.failures else {}),
        )

    async def load(self, keeper: TableKeeper) -> None:
        """Take over the saved table, if there is a usable one."""
        self._keeper = keeper
        if self._snapshot is None:
            return
        try:
            saved = await trio.to_thread.run_sync(lambda path: read_saved(path, zone=self._name), self._snapshot)
            version = await in_slices(self._registry.prepare(await in_slices(_transfer_of(saved, self._zone))))
        except FileNotFoundError:
            self._log.info("no snapshot yet", path=str(self._snapshot))
        except (OSError, SavedTableRefused, TransferRefused) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._log.warning("snapshot not used", path=str(self._snapshot), reason=reason)
        else:
            self._registry.stage(version)
            self._follower.restore(saved.serial)
            self.restored, self._saved = saved.taken, saved.serial

    def notify(self, message: bytes) -> bytes | None:
        """The answer to a NOTIFY (RFC 1996 section 4.7); None for any other message."""
        return answer_notify(message, self._take_notify)

    async def run(self) -> NoReturn:
        """Follow until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follower.run)
            if self._snapshot is not None:
                nursery.start_soon(self._keep_saved, self._snapshot)
            await trio.sleep_forever()

    @property
    def _name(self) -> str:
        return format_wire(self._zone)

    def _take_notify(self, zone: bytes, serial: int | None) -> bool:
        if zone == self._zone:
            self._follower.notify(serial)
        return zone == self._zone

    async def _take(self, transfer: Transfer) -> None:
        version = await in_slices(self._registry.prepare(transfer))
        taken = self._registry.stage(version)
        if self._keeper is not None:
            self._keeper.wake()
        await taken.wait()
        self._changed.set()

    def _note_current(self) -> None:
        if self._keeper is not None and self._registry.serial is not None:
            self._keeper.synced(SOURCE)

    async def _keep_saved(self, path: Path) -> NoReturn:
        try:
            while True:
                await self._changed.wait()
                self._changed = trio.Event()
                begun = trio.current_time()
                await self._save(path, is_last=False)
                await trio.sleep(max(_SAVE_PAUSE, _SAVE_FACTOR * (trio.current_time() - begun)))
                if self._registry.serial != self._saved:
                    self._changed.set()
        finally:
            # What came during the pause; a disk that hangs keeps the program from its end for a moment only.
            with trio.move_on_after(_LAST_SAVE, shield=True):
                await self._save(path, is_last=True)

    async def _save(self, path: Path, *, is_last: bool) -> None:
        """Write the table, unless the file has it."""
        serial, versions = self._registry.serial, self._registry.versions
        if serial is None or serial == self._saved:
            return
        pieces = await in_slices(format_saved(self._name, serial, self._registry.texts()))
        # The rows may have gone on meanwhile: their serial would be wrong.
        if self._registry.versions != versions:
            return
        try:
            await trio.to_thread.run_sync(write_saved, path, pieces, abandon_on_cancel=is_last)
            self._saved, self._warned = serial, False
        except OSError as error:
            if not self._warned:
                self._log.warning("cannot write the snapshot", path=str(path), cause=error.strerror)
            self._warned = True


def _transfer_of(saved: SavedTable, zone: bytes) -> Generator[None, None, Transfer]:
    """A saved table as a transfer, in steps. Raises SavedTableRefused."""
    owners: dict[bytes, Changes] = {}
    for number, text in enumerate(saved.texts):
        try:
            owner = owner_of(parse_row(text)[0], zone) if number else APEX
        except ValueError as error:
            raise SavedTableRefused(str(error)) from None
        owners[owner] = Changes([], records_of(owner, text_records(owner, text, ttl=ROW_TTL)))
        yield
    return Transfer(saved.serial, whole=True, owners=owners)
