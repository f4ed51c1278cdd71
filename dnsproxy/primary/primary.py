"""The primary: its zones, what feeds them, what answers for them, and what tells of them.

The law: a thin shell that joins the parts; every task ends with run().
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import trio

from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.primary.feeder import Serials, ZoneFeeder
from dnsproxy.primary.notifier import Notifier
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.serials import ClockSerials, FileSerials
from dnsproxy.primary.settings import RpzSettings, ServiceEndpoints
from dnsproxy.primary.zone_server import ZoneServer
from dnsproxy.zone.building import Zones
from sidecar.values.endpoints import Endpoint

_FLAGS: Final = "--rpz-notify"


class Primary:
    """Publishes the tables of a keeper; `is_synced`: whether they are whole yet."""

    def __init__(
        self,
        settings: RpzSettings,
        keeper: TableKeeper,
        *,
        ttl: int,
        is_synced: Callable[[], bool],
        serials: Serials | None = None,
    ) -> None:
        self.settings = settings
        self.published = PublishedZones(Zones(settings.zone, wildcards=settings.wildcards))
        self.notifier = Notifier(self.published)
        self.server = ZoneServer(self.published, settings, on_served=self.notifier.served)
        self.feeder = ZoneFeeder(
            self.published, keeper.registry, ttl=ttl, serials=serials or _serials(settings), is_synced=is_synced
        )
        keeper.observers.append(self.feeder)
        self.notifier.set_targets(_FLAGS, [one for one in settings.notify if isinstance(one, Endpoint)])

    @property
    def services(self) -> tuple[ServiceEndpoints, ...]:
        """The Services whose endpoints are to be told."""
        return tuple(one for one in self.settings.notify if isinstance(one, ServiceEndpoints))

    @property
    def serial(self) -> int:
        """Of the current version; 0 before the first."""
        return self.published.zones.serial

    @property
    def behind(self) -> Mapping[bytes, int]:
        """By zone, how many secondaries are not known to have the current version."""
        return self.notifier.behind

    async def run(self) -> NoReturn:
        """Publish and tell until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.feeder.run)
            nursery.start_soon(self.notifier.run)
            await trio.sleep_forever()


def _serials(settings: RpzSettings) -> Serials:
    """Those of a primary that is alone; of a Lease they are given."""
    return FileSerials(settings.serial) if isinstance(settings.serial, Path) else ClockSerials()
