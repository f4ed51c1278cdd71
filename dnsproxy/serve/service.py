"""The service: the parts of one server, what they tell one another, and the tasks that run them.

The law: every task runs inside the nursery of run() and ends with it; a part that cannot start is reported before the
first query is accepted. What only a server with a cluster needs is imported where it is made: it takes 7 MB. When it
ends is the program's matter. Tested in the files test_program*.py.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from dnsproxy.admin.tap_route import TapRoute
from dnsproxy.answers.table import HostTable
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.ownership import Mode
from dnsproxy.hostnames.public_suffixes import load_public_suffixes
from dnsproxy.hostnames.table_changes import TableChanges
from dnsproxy.replica.settings import SOURCE as RPZ
from dnsproxy.serve.answering import Answering
from dnsproxy.serve.balancer_addresses import BalancerAddresses
from dnsproxy.serve.change_log import ChangeLog
from dnsproxy.serve.descriptor_shares import Shares
from dnsproxy.serve.dnstap_part import DnstapPart
from dnsproxy.serve.guarded_domains import GuardedDomains
from dnsproxy.serve.led_names import LedNames
from dnsproxy.serve.published_table import PublishedTable
from dnsproxy.serve.rejection_log import RejectionLog
from dnsproxy.serve.report import SelfReport
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.serve.snapshot_part import SnapshotPart
from dnsproxy.serve.sockets import open_sockets
from dnsproxy.serve.static_hosts import StaticHosts
from dnsproxy.serve.upstream_part import UpstreamPart
from dnsproxy.serve.zone_parts import ZoneParts, make_registry
from dnsproxy.serve.zone_report import ZoneReport
from dnsproxy.sources.settings import ClusterSettings
from sidecar.admin.port import open_admin_port
from sidecar.files.follow import Reloads
from sidecar.kubernetes.cluster import Cluster
from sidecar.loop.free_memory import FreeMemory
from sidecar.sockets.listeners import bound_endpoint
from sidecar.values.endpoints import Endpoint

if TYPE_CHECKING:
    from dnsproxy.sources.cluster_sources import ClusterSources
    from dnsproxy.workers.spawner import SpawnerProcess

STATIC = "static"
UPSTREAMS = "upstreams"

log = structlog.get_logger("dnsproxy")


@dataclass(frozen=True, slots=True)
class Bound:
    """The addresses of a started server."""

    dns: tuple[Endpoint, ...]
    admin: Endpoint | None = None


def _followed(settings: ServeSettings) -> list[str]:
    """The sources that report from the cluster."""
    if settings.cluster is None:
        return []
    from dnsproxy.sources.cluster_sources import ClusterSources  # noqa: PLC0415

    return ClusterSources.reports(settings.cluster, settings.rights)


class Service:
    """The server, the keeper of its table, its sources and its reports."""

    def __init__(
        self,
        settings: ServeSettings,
        shares: Shares,
        reloads: Reloads | None,
        spawner: SpawnerProcess | None = None,
    ) -> None:
        self.settings = settings
        self.reloads = reloads
        self.answering = Answering(settings, shares, spawner)
        self.server = self.answering.server
        sources = [STATIC, *_followed(settings)]
        sources += [RPZ] if settings.replica else []
        sources += [UPSTREAMS] if settings.upstream_configmaps else []
        registry = make_registry(settings)
        self._free_memory = FreeMemory()
        self.keeper = TableKeeper(
            registry,
            ttl=settings.ttl,
            publish=self._publish,
            sources=sources,
            make_writer=self.answering.make_writer,
            settle=self.answering.settle,
            on_swap=self._free_memory.note,
        )
        self._rejection_log = RejectionLog(registry.store, now=trio.current_time)
        self._change_log = ChangeLog()
        changes = TableChanges(on_swap=self._change_log.note)
        self.keeper.observers.append(changes)
        self.cluster: ClusterSources | None = None
        if settings.cluster:
            self._make_cluster(settings.cluster)
        self._zones = ZoneParts(settings, self.keeper, self.answering, is_whole=self._is_whole)
        self._guarded = GuardedDomains(self.keeper, search=settings.guards.search, domains=settings.domains)
        synced = partial(self.keeper.synced, UPSTREAMS)
        self._upstreams = UpstreamPart(settings, self.answering, self._guarded, on_synced=synced)
        self._snapshot = SnapshotPart(settings, registry, self.cluster, upstreams=self._upstreams.saved)
        self._tap = TapRoute(self.server.tap, settings.tap)
        self._dnstap = DnstapPart(
            settings.dnstap, self.server.tap, counters=lambda: self.answering.numbers.counters, drain=settings.drain
        )
        published = PublishedTable(
            lambda: self.server.table,
            self.server.look,
            waiting_for=lambda: self.keeper.waiting_for,
            verified=settings.ownership.mode in {Mode.VERIFY, Mode.ENFORCE},
        )
        self.report = SelfReport(
            self.answering.numbers,
            self.keeper,
            published,
            ttl=settings.ttl,
            zones=ZoneReport(self._zones.primary, self._zones.replica),
            cluster=self.cluster,
            upstreams=self._upstreams.watch,
            workers=self.answering.workers,
            tap=self._tap,
            changes=changes,
            dnstap=self._dnstap,
        )
        self._static = StaticHosts(settings, self.keeper, on_change=self._rejection_log.look)

    async def run(self, cluster: Cluster | None, *, task_status: trio.TaskStatus[Bound]) -> None:
        """Open the sockets and serve until cancelled. Raises StartError."""
        settings = self.settings
        if settings.cluster:
            load_public_suffixes()
        await self._static.load()
        self.keeper.synced(STATIC)
        if cluster is not None:
            self.report.snapshot = self._snapshot.restore(cluster.server)
        self._upstreams.restore(self.report.snapshot.upstreams)
        self.report.snapshot.restored = await self._zones.load() or self.report.snapshot.restored
        await self.keeper.swap()
        # Objects loaded by now, mainly modules, live to the end: a garbage collection of them takes 20 ms and more.
        gc.collect()
        gc.freeze()
        with ExitStack() as sockets:
            streams, datagrams = open_sockets(settings, sockets)
            # Only one kind of socket may have been inherited.
            listening = tuple(dict.fromkeys(map(bound_endpoint, (*streams, *datagrams))))
            # Checked again, because the inherited sockets are known only now.
            self._upstreams.exclude(listening)
            port = sockets.enter_context(open_admin_port(settings.admin, hosts=settings.admin_hosts))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.keeper.run)
                nursery.start_soon(self._free_memory.run)
                self._zones.start(nursery, cluster)
                nursery.start_soon(self._change_log.run)
                nursery.start_soon(self._rejection_log.run)
                nursery.start_soon(self._static.follow, self.reloads)
                self._upstreams.start(nursery, cluster, self.reloads, listening)
                if cluster is not None and self.cluster is not None:
                    nursery.start_soon(self.cluster.run, cluster)
                    nursery.start_soon(self._snapshot.keep, cluster.server, self.report.snapshot)
                if self.cluster is not None:
                    nursery.start_soon(BalancerAddresses(self.keeper, self.server.ask_upstream).run)
                nursery.start_soon(LedNames(self.answering.numbers, self.keeper).run)
                nursery.start_soon(self._tap.run)
                nursery.start_soon(self._dnstap.run)
                nursery.start_soon(self.report.serve, port)
                await self.answering.start(nursery, streams, datagrams, sockets)
                task_status.started(Bound(listening, port.endpoint))

    def _make_cluster(self, followed: ClusterSettings) -> None:
        from dnsproxy.sources.cluster_sources import ClusterSources  # noqa: PLC0415

        self.cluster = ClusterSources(followed, self.keeper, on_synced=self._rejection_log.wake)

    def _is_whole(self) -> bool:
        """Whether the table has all names: of its sources, or of a snapshot."""
        return not self.keeper.waiting_for or self.report.snapshot.restored is not None

    def _publish(self, table: HostTable) -> None:
        self.server.table = table
