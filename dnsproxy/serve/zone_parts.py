"""The parts of a server that is a primary of zones, a replica of one, or both: what they share with the rest of it.

The law: the settings decide at the start whether a server is a primary, a replica, both or neither. The modules of a
part are imported only if the server has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from dnsproxy.hostnames.holds import Holds
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.registry import Registry
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.replica.settings import ReplicaSettings
from dnsproxy.serve.answering import Answering
from dnsproxy.serve.settings import ServeSettings
from sidecar.kubernetes.cluster import Cluster

if TYPE_CHECKING:
    from dnsproxy.primary.primary import Primary
    from dnsproxy.replica.replica import Replica


def make_registry(settings: ServeSettings) -> Registry:
    """A replica's registry has the judgements of its primary."""
    if settings.replica is not None:
        from dnsproxy.replica.replica import table_zone_of  # noqa: PLC0415
        from dnsproxy.replica.replica_registry import ReplicaRegistry  # noqa: PLC0415

        return ReplicaRegistry(table_zone_of(settings.replica))
    return Registry(
        targets=settings.targets,
        guards=settings.guards,
        rights=settings.rights,
        ownership=settings.ownership,
        limits=settings.limits,
        holds=Holds(settings.hold),
    )


class ZoneParts:
    """The primary and the replica of one server. `is_whole`: whether its table has all names."""

    def __init__(
        self, settings: ServeSettings, keeper: TableKeeper, answering: Answering, *, is_whole: Callable[[], bool]
    ) -> None:
        self.replica: Replica | None = None
        self.primary: Primary | None = None
        self._keeper = keeper
        if settings.replica is not None:
            self.replica = _make_replica(settings, settings.replica, keeper.registry)
        if settings.rpz is not None:
            self.primary = _make_primary(settings, settings.rpz, keeper, is_whole)
        self._join(answering)

    async def load(self) -> float | None:
        """Take over the saved table of a replica. When it was saved, in seconds since the epoch; None without one."""
        if self.replica is None:
            return None
        await self.replica.load(self._keeper)
        return self.replica.restored

    def start(self, nursery: trio.Nursery, cluster: Cluster | None) -> None:
        """Follow, publish and tell in the nursery of the service."""
        if self.replica is not None:
            nursery.start_soon(self.replica.run)
        if self.primary is not None:
            nursery.start_soon(self.primary.run, cluster)

    def _join(self, answering: Answering) -> None:
        """Have the server, and its workers, ask the parts."""
        server, notified = answering.server, []
        if self.primary is not None:
            zones = self.primary.published.zones
            notified += [zones.name, zones.table_name]
            server.zones, server.answer_notify = self.primary.server, self.primary.answer_notify
        if self.replica is not None:
            notified.append(self.replica.zone)
            server.answer_notify = self.replica.notify
        served = self.primary.published.zones.name if self.primary is not None else b""
        answering.pass_zones(served, tuple(notified))


def _make_replica(settings: ServeSettings, replica: ReplicaSettings, registry: Registry) -> Replica | None:
    from dnsproxy.replica.replica import Replica  # noqa: PLC0415
    from dnsproxy.replica.replica_registry import ReplicaRegistry  # noqa: PLC0415

    if not isinstance(registry, ReplicaRegistry):
        return None
    return Replica(replica, registry, snapshot=settings.snapshot)


def _make_primary(
    settings: ServeSettings, rpz: RpzSettings, keeper: TableKeeper, is_whole: Callable[[], bool]
) -> Primary:
    from dnsproxy.primary.primary import Primary  # noqa: PLC0415
    from dnsproxy.replica.replica_registry import ReplicaRegistry  # noqa: PLC0415

    registry = keeper.registry
    given = (lambda: registry.serial) if isinstance(registry, ReplicaRegistry) else None
    return Primary(rpz, keeper, ttl=settings.ttl, is_synced=is_whole, given=given)
