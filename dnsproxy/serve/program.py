"""`dnsproxy serve`: finds the cluster, divides the descriptors, and runs the service until a signal.

The law: when a server starts and ends, and nothing of what it does meanwhile (service.py). The end: not ready, then the
lame duck's time, then pending queries, then the tasks are cancelled.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from dnsproxy.serve.descriptor_shares import divide
from dnsproxy.serve.service import Bound, Service
from dnsproxy.serve.settings import ServeSettings
from sidecar.cli.signals import run_until_signal
from sidecar.files.follow import Reloads
from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.config import find_cluster
from sidecar.sockets.descriptors import admin_share, descriptor_limit, free_descriptors

if TYPE_CHECKING:
    from dnsproxy.workers.spawner import SpawnerProcess

log = structlog.get_logger("dnsproxy")


async def run_serve(settings: ServeSettings, spawner: SpawnerProcess | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit status. With a spawner, its workers answer."""
    reloads = Reloads()
    return await run_until_signal(
        partial(serve, settings, reloads=reloads, spawner=spawner),
        grace=settings.lameduck + settings.drain,
        reload=reloads.request,
        upcoming=_upcoming(settings),
    )


def _upcoming(settings: ServeSettings) -> int:
    """Descriptors that a server opens for certain: UDP and TCP for each endpoint, the poller and the admin port.

    Each worker has sockets of its own, and a control socket.
    """
    return 2 * len(settings.listen) * settings.workers + 2 + (settings.workers if settings.workers > 1 else 0)


async def serve(
    settings: ServeSettings,
    stopping: trio.Event,
    *,
    reloads: Reloads | None = None,
    spawner: SpawnerProcess | None = None,
    task_status: trio.TaskStatus[Bound] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `stopping` is set and for the lame duck's time, then answer pending queries. Raises StartError."""
    cluster = await _load_cluster(settings)
    async with trio.open_nursery() as nursery:
        shares = divide(free_descriptors(upcoming=_upcoming(settings)), admin=admin_share(descriptor_limit()))
        service = Service(settings, shares, reloads, spawner)
        bound = await nursery.start(service.run, cluster)
        where = {"dns": [str(endpoint) for endpoint in bound.dns], "admin": str(bound.admin or "off")}
        log.info("limits", descriptors=descriptor_limit(), **shares._asdict())
        guards = settings.guards
        told = {"cluster_domains": guards.cluster_domains, "told_by": settings.domains.told_by}
        log.info("serving", **where, **told, search_domains=guards.search)
        task_status.started(bound)
        await stopping.wait()
        # First not ready, but answering as before: clients need some time to notice.
        service.report.stopping = True
        if settings.lameduck:
            log.info("not ready any more, still answering", seconds=settings.lameduck)
            await trio.sleep(settings.lameduck)
        await service.answering.drain()
        nursery.cancel_scope.cancel()


async def _load_cluster(settings: ServeSettings) -> Cluster | None:
    rpz = settings.rpz if settings.rpz is not None and settings.rpz.needs_cluster else None
    wanted = settings.cluster or settings.upstream_configmaps or rpz
    if wanted is None:
        return None
    flag = "--source" if settings.cluster else "--upstream-configmap" if settings.upstream_configmaps else "--rpz"
    return await find_cluster(kubeconfig=wanted.kubeconfig, context=wanted.context, flag=flag)
