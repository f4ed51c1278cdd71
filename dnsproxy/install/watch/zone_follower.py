"""Follows the zones of dnsproxy's pods, and reports one that the last look did not see.

The law: a thin shell; a pod that does not answer changes nothing, and is logged once until one answers again. A new
zone is reported once: the state machine decides whether and when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import structlog

from dnsproxy.admin.pod_poller import PodPoller
from dnsproxy.install.run.own_zones import OwnZones, ZonesReader
from sidecar.values.endpoints import Endpoint
from sidecar.values.text import one_line

log = structlog.get_logger("dnsproxy.install")


class ZoneFollower:
    """Calls `on_new` for zones that are new since the last look; `follow` says what it saw."""

    def __init__(self, reader: ZonesReader, on_new: Callable[[], None]) -> None:
        self._reader = reader
        self._on_new = on_new
        self._poller = PodPoller(self._read)
        self._known: set[str] = set()
        self._answers = True

    def follow(self, pods: tuple[Endpoint, ...], zones: Iterable[str]) -> None:
        """Ask these pods, and none without any; the caller knows these zones."""
        self._known = set(zones)
        self._poller.follow(pods)

    async def run(self) -> NoReturn:
        """Ask until cancelled."""
        await self._poller.run()

    async def _read(self, pods: Sequence[Endpoint]) -> bool:
        found = await self._reader.read(pods)
        self._note(found)
        if new := set(found.zones) - self._known:
            self._known |= new
            log.info("new zones", zones=sorted(new))
            self._on_new()
        return found.answered > 0

    def _note(self, found: OwnZones) -> None:
        answers = found.answered > 0
        if answers != self._answers and answers:
            log.info("dnsproxy gives its zones again")
        elif answers != self._answers:
            log.warning("dnsproxy gives no zones, and those of the stanza stay", cause=one_line(found.doubt))
        self._answers = answers
