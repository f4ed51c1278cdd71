"""The published zones: the versions that secondaries see, and what is sent of them.

The law: a reader gets one version whole. While the next one is made, readers wait; a reader that has its pieces keeps
nobody waiting. What many secondaries ask for is made once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from typing import Final, NamedTuple

import trio

from dnsproxy.zone.building import Zones
from dnsproxy.zone.content import Difference, Piece, ZoneContent
from dnsproxy.zone.transfer import ZoneVersion
from sidecar.loop.slices import in_slices

_KEPT: Final = 64
"""Differences kept: secondaries that ask at one time have few different serials."""
_QUICK_STEPS: Final = 200
"""Steps that a difference may take between two batches of queries."""


class Snapshot(NamedTuple):
    """One version and all of its records."""

    version: ZoneVersion
    pieces: tuple[Piece, ...]


class Increment(NamedTuple):
    """One version and what separates an older one from it; None if that is not known."""

    version: ZoneVersion
    difference: Difference | None
    size: int
    """Octets of the whole zone: a difference that is larger is not worth sending."""


class PublishedZones:
    """The two zones, and a lock for those who change them."""

    def __init__(self, zones: Zones) -> None:
        self.zones = zones
        self.changing = trio.Lock()
        """Held while the next version is made."""
        self.committed = trio.Event()
        """Set at the next commit, and replaced."""
        self._differences: OrderedDict[tuple[bytes, int], Difference | None] = OrderedDict()

    def commit(self, name: bytes, serial: int) -> None:
        """Publish what was changed in one zone. The caller holds the lock."""
        content = self.zones.content_of(name)
        if content is not None:
            content.commit(serial)
        self.tell()

    def tell(self) -> None:
        """Forget what was made of the versions before, and wake those who wait for the next."""
        self._differences.clear()
        self.committed.set()
        self.committed = trio.Event()

    def version(self, name: bytes) -> ZoneVersion | None:
        """The current version of a zone; None if there is none yet, or no such zone."""
        content = self.zones.content_of(name)
        return None if content is None or not content.serial else self._version(name, content)

    async def snapshot(self, name: bytes) -> Snapshot | None:
        """The current version, whole."""
        async with self.changing:
            content = self.zones.content_of(name)
            if content is None or not content.serial:
                return None
            pieces = await in_slices(content.pieces())
            return Snapshot(self._version(name, content), pieces)

    async def increment(self, name: bytes, since: int) -> Increment | None:
        """What came after a serial."""
        async with self.changing:
            content = self.zones.content_of(name)
            if content is None or not content.serial:
                return None
            key = name, since
            if key not in self._differences:
                self._keep(key, await in_slices(content.difference(since)))
            return Increment(self._version(name, content), self._differences[key], content.octets)

    def increment_now(self, name: bytes, since: int) -> Difference | None:
        """What came after a serial, if it is at hand or quickly made; None otherwise."""
        content = self.zones.content_of(name)
        if content is None or self.changing.locked():
            return None
        key = name, since
        if key not in self._differences:
            made, found = _run_briefly(content.difference(since))
            if not made:
                return None
            self._keep(key, found)
        return self._differences[key]

    def _keep(self, key: tuple[bytes, int], found: Difference | None) -> None:
        self._differences[key] = found
        if len(self._differences) > _KEPT:
            self._differences.popitem(last=False)

    def _version(self, name: bytes, content: ZoneContent) -> ZoneVersion:
        return ZoneVersion(name, content.serial, ttl=self.zones.ttl)


def _run_briefly(steps: Generator[None, None, Difference | None]) -> tuple[bool, Difference | None]:
    """Whether it came to its end, and its result."""
    try:
        for _ in range(_QUICK_STEPS):
            next(steps)
    except StopIteration as done:
        return True, done.value
    steps.close()
    return False, None
