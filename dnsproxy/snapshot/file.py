"""The snapshot's file: read once at the start, and written again after the claims of the cluster have changed.

The law: no fault of the file keeps the server from starting or answering; a fault is logged once, as a warning. The
file is complete at every moment: either the old one or the new one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, NoReturn

import structlog
import trio

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.snapshot.format import (
    LARGEST,
    SavedRights,
    SavedUpstreams,
    Settings,
    Snapshot,
    SnapshotRefused,
    format_age,
    format_snapshot,
    parse_snapshot,
    walk_held,
    walk_objects,
)
from dnsproxy.snapshot.schedule import DEFAULT_PACE, SnapshotPace, SnapshotSchedule
from sidecar.files.follow import read_octets
from sidecar.files.replace import replace_file

Services = Mapping[str, tuple[str, ...]]
"""Addresses by `NAMESPACE/NAME`; the mapping is replaced, never changed in place."""

_LAST_WRITE: Final = 2.0
"""Seconds for the write at the end of the program."""
_ABANDONED: Final = 3600
"""Seconds after which a temporary file counts as left by a killed process."""


@dataclass(slots=True)
class SnapshotStatus:
    """The status of the snapshot; times in seconds since the epoch."""

    restored: float | None = None
    """When the claims that this process started with were taken."""
    upstreams: SavedUpstreams | None = None
    """The upstreams of that snapshot."""
    written: float | None = None
    """When the file was last written by this process."""
    failures: int = 0


def load_snapshot(path: Path, *, settings: Settings) -> Snapshot | None:
    """The snapshot in a file; None, with the reason in the log, if it is not usable."""
    log = structlog.get_logger("dnsproxy.snapshot")
    try:
        snapshot = parse_snapshot(_read(path), settings=settings)
    except FileNotFoundError:
        log.info("no snapshot yet", path=str(path))
    except (OSError, SnapshotRefused) as error:
        log.warning("snapshot not used", path=str(path), reason=_reason(error))
    else:
        age = format_age(time.time() - snapshot.taken)
        log.info("snapshot read", path=str(path), objects=len(snapshot.objects), age=age)
        return snapshot
    return None


def restore_snapshot(path: Path, registry: Registry, *, settings: Settings) -> SnapshotStatus:
    """Restore the claims of the file until the sources report. `restored` is None without a usable snapshot."""
    snapshot = load_snapshot(path, settings=settings)
    if snapshot is None:
        return SnapshotStatus()
    registry.set_services(snapshot.services)
    rights = snapshot.rights
    registry.set_rights(namespaces=rights.namespaces, classes=rights.classes, nginx_classes=rights.nginx_classes)
    registry.set_steered(rights.steered or {}, rights.balancers)
    for one in snapshot.objects:
        registry.touch(registry.shares.restore(one.source, one.key, one.claims))
    registry.holds.restore(snapshot.held, now=time.time())
    registry.touch([row.hostname for row in snapshot.held])
    return SnapshotStatus(restored=snapshot.taken, upstreams=snapshot.upstreams)


def _no_upstreams() -> None:
    return None


async def keep_snapshot(
    path: Path,
    store: ClaimStore,
    *,
    sources: Collection[str],
    settings: Settings,
    consistent: Callable[[], bool],
    services: Callable[[], Services] = dict,
    upstreams: Callable[[], SavedUpstreams | None] = _no_upstreams,
    holds: Holds | None = None,
    rights: Callable[[], SavedRights] = SavedRights,
    status: SnapshotStatus | None = None,
    pace: SnapshotPace = DEFAULT_PACE,
) -> NoReturn:
    """Write the claims of `sources` after they changed, until cancelled; schedule.py decides when.

    `consistent` tells whether the claims match the cluster: every source has reported all its objects, and none is
    unconfirmed. While it returns False, nothing is written. `services` returns the addresses of the Services that
    targets name, `upstreams` the last good upstreams of a ConfigMap, `rights` what gives rights; `holds` says who has a
    name.
    """
    keeper = _Keeper(
        path,
        store,
        sources,
        settings,
        consistent=consistent,
        services=services,
        upstreams=upstreams,
        holds=holds or Holds(),
        rights=rights,
        status=status or SnapshotStatus(),
        pace=pace,
    )
    await keeper.run()


class _Keeper:
    def __init__(
        self,
        path: Path,
        store: ClaimStore,
        sources: Collection[str],
        settings: Settings,
        *,
        consistent: Callable[[], bool],
        services: Callable[[], Services],
        upstreams: Callable[[], SavedUpstreams | None],
        holds: Holds,
        rights: Callable[[], SavedRights],
        status: SnapshotStatus,
        pace: SnapshotPace,
    ) -> None:
        self.path = path
        self.store = store
        self.sources = frozenset(sources)
        self.settings = settings
        self.consistent = consistent
        self.services = services
        self.upstreams = upstreams
        self.holds = holds
        self.rights = rights
        self.status = status
        self.pace = pace
        self.schedule = SnapshotSchedule(pace)
        self.warned = False
        self.writing = False
        """Whether a thread writes the file; the program may have abandoned it."""
        self.log = structlog.get_logger("dnsproxy.snapshot")

    async def run(self) -> NoReturn:
        await trio.to_thread.run_sync(_sweep, self.path, abandon_on_cancel=True)
        pause = self.pace.interval
        try:
            while True:
                await trio.sleep(pause)
                started, pause = trio.current_time(), self.pace.interval
                if self.is_due():
                    written = await self.write()
                    pause = self.schedule.pause(lasted=trio.current_time() - started, failed=not written)
        finally:
            # What came during the pause; a disk that hangs keeps the program from its end for a moment only.
            with trio.move_on_after(_LAST_WRITE, shield=True):
                if not self.writing and self.is_due():
                    await self.write()

    def is_due(self) -> bool:
        empty, now = not self.store.holds(self.sources), trio.current_time()
        return self.schedule.is_due(version=self.version(), consistent=self.consistent(), empty=empty, now=now)

    def version(self) -> object:
        return self.store.version, self.services(), self.upstreams(), self.holds.version, self.rights()

    async def write(self) -> bool:
        """Write the current claims. Returns whether that worked."""
        version, taken = self.version(), time.time()
        objects = chain(walk_objects(self.store, self.sources), walk_held(self.holds))
        services = self.services()
        pieces = []
        written = format_snapshot(
            objects,
            taken=taken,
            settings=self.settings,
            services=services,
            upstreams=self.upstreams(),
            rights=self.rights(),
        )
        for piece in written:
            pieces.append(piece)
            await trio.lowlevel.checkpoint()
        self.writing = True
        try:
            # A disk may be slow; the thread has all its data and is abandoned at the end of the program.
            await trio.to_thread.run_sync(write_file, self.path, pieces, abandon_on_cancel=True)
        except OSError as error:
            self.writing = False
            self.status.failures += 1
            if not self.warned:
                self.log.warning("cannot write the snapshot", path=str(self.path), cause=_reason(error))
            self.warned = True
            return False
        self.writing = False
        if self.warned:
            self.log.info("snapshot written again", path=str(self.path))
        self.warned = False
        self.schedule.written(version=version, now=trio.current_time())
        self.status.written = taken
        return True


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace a file with the pieces, readable for its owner alone. Raises OSError; the old file then stays."""
    path = Path(os.path.realpath(path))  # Path.resolve() raises RuntimeError for a link to itself
    replace_file(path, pieces, prefix=_prefix(path))


def _sweep(path: Path) -> None:
    """Remove temporary files of processes that were killed while writing."""
    path = Path(os.path.realpath(path))  # Path.resolve() raises RuntimeError for a link to itself
    before = time.time() - _ABANDONED
    with suppress(OSError):
        for one in os.scandir(path.parent):
            if one.name.startswith(_prefix(path)) and one.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(one.path)


def _prefix(path: Path) -> str:
    return f".{path.name}.new-"


def _read(path: Path) -> bytes:
    try:
        return read_octets(path, largest=LARGEST)
    except ValueError as error:
        raise SnapshotRefused(f"it {error}") from None


def _reason(error: OSError | SnapshotRefused) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
