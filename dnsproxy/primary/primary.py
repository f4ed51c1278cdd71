"""The primary: its zones, what feeds them, what answers for them, and what tells of them.

The law: a thin shell that joins the parts; every task ends with run().
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import trio

from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.primary.feeder import Serials, ZoneFeeder
from dnsproxy.primary.notified_endpoints import follow_endpoints
from dnsproxy.primary.notifier import Notifier
from dnsproxy.primary.published_zones import PublishedZones
from dnsproxy.primary.serials import ClockSerials, FileSerials, SameSerials
from dnsproxy.primary.settings import LeaseRef, RpzSettings, ServiceEndpoints
from dnsproxy.primary.shared_zone import SharedZone
from dnsproxy.primary.zone_server import ZoneServer
from dnsproxy.zone.building import Zones
from dnsproxy.zone.requests import answer_notify
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint

_FLAGS: Final = "--rpz-notify"


class Primary:
    """Publishes the tables of a keeper; `is_synced`: whether they are whole yet.

    `given`: the serial of the keeper's table from another primary, whose zones are served on, None before the first;
    without it, serials are as the settings say.
    """

    def __init__(
        self,
        settings: RpzSettings,
        keeper: TableKeeper,
        *,
        ttl: int,
        is_synced: Callable[[], bool],
        given: Callable[[], int | None] | None = None,
    ) -> None:
        self.settings = settings
        self.published = PublishedZones(Zones(settings.zone, wildcards=settings.wildcards, triggers=settings.triggers))
        self.notifier = Notifier(self.published)
        self.server = ZoneServer(self.published, settings, on_served=self.notifier.served)
        self._shared = self._make_shared()
        serials: Serials = SameSerials(given) if given is not None else self._shared or _serials(settings)
        self._feeder = ZoneFeeder(
            self.published,
            keeper.registry,
            ttl=ttl,
            serials=serials,
            is_synced=is_synced,
            retell=keeper.retell,
            given=given or _nothing,
        )
        keeper.observers.append(self._feeder)
        self.notifier.set_targets(_FLAGS, [one for one in settings.notify if isinstance(one, Endpoint)])

    @property
    def behind(self) -> Mapping[bytes, int]:
        """By zone, how many secondaries are not known to have the current version."""
        return self.notifier.behind

    @property
    def publishes(self) -> bool:
        """Whether this process makes the versions; False: it serves those of another one."""
        return self._shared is None or self._shared.may_publish()

    def answer_notify(self, message: bytes) -> bytes | None:
        """The answer to a NOTIFY of the replica that publishes; None for any other message."""
        shared = self._shared
        if shared is None:
            return None
        # The replica that publishes never asks for the serial: after another answer it would be notified for ever.
        return answer_notify(message, lambda zone, serial: shared.notify(zone, serial) and not self.publishes)

    async def run(self, cluster: Cluster | None) -> NoReturn:
        """Publish and tell until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._feeder.run)
            nursery.start_soon(self.notifier.run)
            if cluster is not None and self.settings.needs_cluster:
                nursery.start_soon(self._ask_cluster, cluster)
            await trio.sleep_forever()

    async def _ask_cluster(self, cluster: Cluster) -> None:
        async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
            for service in self.settings.notify:
                if isinstance(service, ServiceEndpoints):
                    tell = partial(self._tell, str(service))
                    nursery.start_soon(partial(follow_endpoints, client, service, tell=tell))
            if self._shared is not None:
                nursery.start_soon(self._shared.run, client)
                nursery.start_soon(self._follow_leading, self._shared)

    def _tell(self, source: str, endpoints: Iterable[Endpoint]) -> None:
        # A Service with both replicas has this one too.
        self.notifier.set_targets(source, [one for one in endpoints if one != self.settings.address])

    async def _follow_leading(self, shared: SharedZone) -> NoReturn:
        while True:
            await shared.changed.wait()
            self._feeder.wake()

    def _make_shared(self) -> SharedZone | None:
        settings = self.settings
        if not isinstance(settings.serial, LeaseRef) or settings.address is None:
            return None
        key = settings.keys[0] if settings.keys else None
        return SharedZone(settings.serial, self.published, address=settings.address, key=key)


def _nothing() -> None:
    """No other primary gives a serial."""


def _serials(settings: RpzSettings) -> Serials:
    """Those of a primary that is alone."""
    return FileSerials(settings.serial) if isinstance(settings.serial, Path) else ClockSerials()
