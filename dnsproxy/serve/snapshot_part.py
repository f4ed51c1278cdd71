"""The part of a service that keeps the names of its cluster in a file (--snapshot), and begins with those.

The law: without the flag, or without a cluster, it does nothing. What a file must be like to count is the matter of
snapshot/format.py, when it is written that of snapshot/schedule.py. Tested in test_program_cluster.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dnsproxy.hostnames.registry import Registry
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.snapshot.file import SnapshotStatus, keep_snapshot, restore_snapshot
from dnsproxy.snapshot.format import SavedRights, SavedUpstreams

if TYPE_CHECKING:
    from dnsproxy.sources.cluster_sources import ClusterSources


class SnapshotPart:
    """The snapshot of the claims of a registry; `server` is the URL of the cluster's API server."""

    def __init__(
        self,
        settings: ServeSettings,
        registry: Registry,
        cluster: ClusterSources | None,
        *,
        upstreams: Callable[[], SavedUpstreams | None],
    ) -> None:
        self._path = settings.snapshot
        self._followed = settings.cluster
        self._registry = registry
        self._cluster = cluster
        self._upstreams = upstreams

    def restore(self, server: str) -> SnapshotStatus:
        """Restore the claims of the file."""
        if self._path is None or self._followed is None:
            return SnapshotStatus()
        return restore_snapshot(self._path, self._registry, settings=self._followed.snapshot_settings(server))

    async def keep(self, server: str, status: SnapshotStatus) -> None:
        """Write the file until cancelled; returns at once without one."""
        cluster = self._cluster
        if self._path is None or self._followed is None or cluster is None:
            return
        await keep_snapshot(
            self._path,
            self._registry.store,
            sources=cluster.kinds(self._followed),
            settings=self._followed.snapshot_settings(server),
            consistent=lambda: cluster.consistent,
            services=lambda: cluster.services,
            holds=self._registry.holds,
            upstreams=self._upstreams,
            rights=self._rights,
            status=status,
        )

    def _rights(self) -> SavedRights:
        rights, targets = self._registry.rights, self._registry.targets
        if rights is None:
            return SavedRights()
        steered, balancers = dict(targets.steered), dict(targets.balancers)
        return SavedRights(rights.namespaces, rights.classes, steered, rights.nginx_classes, balancers)
