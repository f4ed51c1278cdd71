"""The report of a running server: readiness, the status page, metrics, and notes on the data.

The law: it reads and changes nothing; every answer shows the current state. Tested in the files
test_program*.py, over a real admin port.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio
from prometheus_client.core import Metric

from dnsproxy.admin.changes_route import changes_route
from dnsproxy.admin.pages.overview import Overview, UpstreamState, WorkerFacts
from dnsproxy.admin.pages.rates import CHARTS, read_counters
from dnsproxy.admin.pages.routes import Pages, table_routes
from dnsproxy.admin.publication_route import PublicationRoute
from dnsproxy.admin.rewrites_route import RewritesRoute
from dnsproxy.admin.subjects_route import subjects_route
from dnsproxy.admin.tap_route import TapRoute
from dnsproxy.admin.zones_route import zones_route
from dnsproxy.hostnames.keeper import TableKeeper
from dnsproxy.hostnames.table_changes import TableChanges
from dnsproxy.hostnames.wide_wildcards import find_wide
from dnsproxy.serve.dnstap_part import DnstapPart
from dnsproxy.serve.metrics import AnsweringServer, ServerCollector
from dnsproxy.serve.published_table import PublishedTable
from dnsproxy.serve.zone_report import ZoneReport
from dnsproxy.snapshot.file import SnapshotStatus
from dnsproxy.snapshot.format import format_restored
from dnsproxy.workers.numbers import PoolNumbers
from sidecar.admin.page.document import Fact, Level
from sidecar.admin.page.history import History
from sidecar.admin.port import AdminPort
from sidecar.admin.server import Readiness
from sidecar.kubernetes.follower_status import FollowerStatus

if TYPE_CHECKING:
    from dnsproxy.serve.upstream_watch import UpstreamWatch
    from dnsproxy.sources.cluster_sources import ClusterSources

_TIDY_SECONDS: Final = 5
"""Between two releases of unused search indexes."""
_STOPPING: Final = Readiness(False, "stopping")
_NO_WORKER: Final = Readiness(False, "no worker answers")
"""One is enough: a worker that died or hangs is replaced within seconds, and its queries wait for that. Not to be ready
would take the others from the clients too."""


class SelfReport:
    """The reports of one server and of the sources of its table."""

    def __init__(
        self,
        server: AnsweringServer,
        keeper: TableKeeper,
        published: PublishedTable,
        *,
        ttl: int,
        cluster: ClusterSources | None = None,
        upstreams: UpstreamWatch | None = None,
        zones: ZoneReport | None = None,
        workers: PoolNumbers | None = None,
        tap: TapRoute | None = None,
        changes: TableChanges | None = None,
        dnstap: DnstapPart | None = None,
    ) -> None:
        self.stopping = False
        """Whether the server is shutting down and not ready any more."""
        self.snapshot = SnapshotStatus()
        self._server = server
        self._keeper = keeper
        self._published = published
        self._ttl = ttl
        self._cluster = cluster
        self._watched_upstreams = upstreams
        self._zones = zones or ZoneReport()
        self._workers = workers
        self._tap = tap
        self._changes = changes
        self._dnstap = dnstap
        self._history = History(CHARTS)

    async def serve(self, port: AdminPort) -> None:
        """Answer on the admin port until cancelled."""
        published = self._published
        names = PublicationRoute(lambda: published.table, ttl=lambda: self._keeper.registry.ttl or self._ttl)
        counted = [
            route(self._keeper.registry, waiting_for=lambda: self._keeper.waiting_for)
            for route in (zones_route, subjects_route)
        ]
        rewrites = RewritesRoute(lambda: published.table, self._keeper.registry, waiting_for=published.waiting_for)
        recent = self._tap.recent if self._tap else None
        pages = Pages(
            self._keeper.registry,
            ttl=self._ttl,
            look=self._overview,
            notes=self._notes,
            recent=recent,
            last_changes=self._changes.newest_first if self._changes else list,
            tapped=self._tap is not None and self._tap.shows,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_tidy, pages)
            nursery.start_soon(published.run)
            await port.serve(
                ServerCollector(
                    self._server,
                    self._keeper,
                    self._statuses,
                    upstream_notes=self._upstream_notes,
                    more=self._more_metrics,
                    workers=self._workers,
                ),
                prefix="dnsproxy",
                readiness=self._judge,
                page=pages.overview,
                routes={
                    **pages.routes(),
                    **table_routes(self._keeper.registry, ttl=self._ttl, notes=self._notes, recent=recent),
                    **published.routes({**names.routes(waiting_for=published.waiting_for), **rewrites.routes()}),
                    **{path: show for one in counted for path, show in one.routes().items()},
                    **(self._tap.routes() if self._tap else {}),
                    **(changes_route(self._changes) if self._changes else {}),
                },
                samples=(self._history, self._read_counters),
            )
            # Without a port there is nothing to tidy either.
            nursery.cancel_scope.cancel()

    def _more_metrics(self) -> Iterator[Metric]:
        yield from self._zones.metrics()
        if self._dnstap is not None:
            yield from self._dnstap.metrics()

    def _read_counters(self) -> Mapping[str, float]:
        return read_counters(self._server.counters, outstanding=self._server.outstanding)

    def _overview(self) -> Overview:
        keeper = self._keeper
        readiness = self._judge()
        excluded, elsewhere = keeper.registry.outcomes.counts
        return Overview(
            state=Fact("State", readiness.reason, Level.OK if readiness.ready else Level.BAD, "state"),
            names=keeper.names,
            waiting=keeper.registry.outcomes.waiting,
            excluded=excluded,
            elsewhere=elsewhere,
            rejected=keeper.registry.store.rejected_hosts,
            swapped=None if keeper.swapped_time is None else max(0.0, time.time() - keeper.swapped_time),
            waiting_for=keeper.waiting_for,
            sources=self._statuses(),
            now=trio.current_time(),
            outstanding=self._server.outstanding,
            upstreams=self._upstreams(),
            counters=self._server.counters,
            history=self._history,
            workers=self._worker_facts(),
            notes=[*self._notes(), *self._hints()],
        )

    def _hints(self) -> Iterator[str]:
        """What an operator should know about the names, and what changes no answer by itself."""
        registry = self._keeper.registry
        yield from (one.shown for one in registry.outcomes.unknown_addresses)
        yield from (one.sentence for one in find_wide(registry))

    def _upstreams(self) -> list[UpstreamState]:
        return [
            UpstreamState(one.name, one.asked, one.failing, one.looping, one.misses, one.stream_only)
            for one in self._server.upstream_reports()
        ]

    def _worker_facts(self) -> list[WorkerFacts]:
        states = self._workers.states() if self._workers else []
        return [WorkerFacts(one.place, one.process, one.since, one.restarts, one.answering) for one in states]

    def _statuses(self) -> list[FollowerStatus]:
        upstreams = self._watched_upstreams.statuses if self._watched_upstreams else []
        return [*(self._cluster.statuses if self._cluster else []), *self._zones.sources(), *upstreams]

    def _notes(self) -> list[str]:
        waiting = self._keeper.waiting_for
        return [
            *([self._waits_for(waiting)] if waiting else []),
            *([self._restored] if waiting and self._restored else []),
            *self._upstream_notes(),
            *self._zones.notes(),
            *(self._dnstap.notes() if self._dnstap else ()),
            *(self._watched_upstreams.skipped if self._watched_upstreams else ()),
            *(f"target service:{key}: {fault}" for key, fault in self._faults().items()),
        ]

    @property
    def _restored(self) -> str:
        """The note about names from a snapshot that the cluster has not confirmed yet; empty if there are none."""
        taken = self.snapshot.restored
        return "" if taken is None else format_restored(taken, now=time.time())

    def _upstream_notes(self) -> list[str]:
        return self._watched_upstreams.notes if self._watched_upstreams else []

    def _faults(self) -> Mapping[str, str]:
        return self._cluster.faults if self._cluster else {}

    def _judge(self) -> Readiness:
        if self.stopping:
            return _STOPPING
        if self._workers is not None and not self._workers.answering:
            return _NO_WORKER
        waiting = self._keeper.waiting_for
        if not waiting:
            return Readiness(True, f"ready, {self._keeper.names} names")
        if self._restored:
            return Readiness(True, f"ready, {self._restored}; {self._waits_for(waiting)}")
        return Readiness(False, self._waits_for(waiting))

    def _waits_for(self, sources: Sequence[str]) -> str:
        unread = self._cluster.unread if self._cluster else []
        return "; ".join((f"waiting for the first sync of: {', '.join(sources)}", *unread))


async def _keep_tidy(pages: Pages) -> None:
    while True:
        await trio.sleep(_TIDY_SECONDS)
        pages.tidy()
