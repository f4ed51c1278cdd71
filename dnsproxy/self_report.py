"""What a running server says of itself: readiness, the status page, metrics, and what one should know of the data.

The law: it looks and changes nothing; every answer is of this moment.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Final

from dnsproxy.admin_pages import table_routes
from dnsproxy.cluster_sources import ClusterSources
from dnsproxy.keeper import TableKeeper
from dnsproxy.metrics import ServerCollector
from dnsproxy.ownership_watch import OwnershipWatch
from dnsproxy.page import format_page
from dnsproxy.publish.published import Published
from dnsproxy.server import DnsServer
from dnsproxy.snapshot import format_restored
from dnsproxy.snapshot_file import SnapshotStatus
from sidecar.admin import Readiness, serve_admin
from sidecar.kubernetes.status import Status
from sidecar.registries import make_registry

_STOPPING: Final = Readiness(False, "stopping")


class SelfReport:
    """Reports of one server and what fills its table."""

    def __init__(
        self,
        server: DnsServer,
        keeper: TableKeeper,
        *,
        ttl: int,
        cluster: ClusterSources | None = None,
        ownership: OwnershipWatch | None = None,
    ) -> None:
        self.stopping = False
        """Whether it is not to be asked any more."""
        self.snapshot = SnapshotStatus()
        self._server = server
        self._keeper = keeper
        self._ttl = ttl
        self._cluster = cluster
        self._ownership = ownership

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Answer on the admin port until cancelled."""
        looks = self._ownership.looks if self._ownership else None
        published = Published(lambda: self._server.table, ttl=self._ttl)
        registry = make_registry(ServerCollector(self._server, self._keeper, self._statuses, looks=looks))
        await serve_admin(
            listeners,
            readiness=self._readiness,
            registry=registry,
            page=self._page,
            routes={
                **table_routes(self._keeper.registry, ttl=self._ttl, notes=self._notes),
                **published.routes(waiting_for=lambda: self._keeper.waiting_for),
            },
        )

    def _page(self) -> str:
        keeper = self._keeper
        return format_page(
            names=keeper.names,
            waiting_for=keeper.waiting_for,
            sources=self._statuses(),
            outstanding=self._server.outstanding,
            notes=self._notes(),
            lost=keeper.registry.lost(),
            doubted=keeper.registry.doubted(),
        )

    def _statuses(self) -> list[Status]:
        return self._cluster.statuses if self._cluster else []

    def _notes(self) -> list[str]:
        waiting = self._keeper.waiting_for
        return [
            *([_waits_for(waiting)] if waiting else []),
            *([self._restored] if waiting and self._restored else []),
            *(f"target service:{key}: {fault}" for key, fault in self._faults().items()),
        ]

    @property
    def _restored(self) -> str:
        """Where the names are from that the cluster has not confirmed yet; empty where there are none."""
        taken = self.snapshot.restored
        return "" if taken is None else format_restored(taken, now=time.time())

    def _faults(self) -> Mapping[str, str]:
        return self._cluster.faults if self._cluster else {}

    async def _readiness(self) -> Readiness:
        if self.stopping:
            return _STOPPING
        waiting = self._keeper.waiting_for
        if not waiting:
            return Readiness(True, f"ready, {self._keeper.names} names")
        if self._restored:
            return Readiness(True, f"ready, {self._restored}; {_waits_for(waiting)}")
        return Readiness(False, _waits_for(waiting))


def _waits_for(sources: Sequence[str]) -> str:
    return f"waiting for the first sync of: {', '.join(sources)}"
