"""`dnsproxy install --watch` as a program: a watcher until a signal, with an admin port beside.

The law: all tasks live in one nursery. At the end the stanza stays; `dnsproxy uninstall` removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog
import trio

from dnsproxy.install.run.survey import InstallRequest
from dnsproxy.install.watch.watcher import Watcher
from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus, format_page
from sidecar.admin.port import AdminPort
from sidecar.admin.server import Readiness
from sidecar.cli.cluster_program import GRACE, ClusterAccess, cluster_program
from sidecar.cli.signals import run_until_signal
from sidecar.values.endpoints import Endpoint

log = structlog.get_logger("dnsproxy.install")


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The settings of `dnsproxy install --watch`."""

    request: InstallRequest
    access: ClusterAccess
    dns: Endpoint | None = None
    """The address for queries to the cluster's DNS; None: that of its Service."""
    seconds: float = 0.0
    """How long it may take to load the stanza before a warning; 0: it is not asked."""


async def run_watch(settings: WatchSettings) -> int:
    """Watch until SIGTERM or SIGINT; the exit status. Raises StartError."""
    return await run_until_signal(partial(watch, settings), grace=GRACE)


async def watch(
    settings: WatchSettings,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[Endpoint | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Watch until `stopping` is set; `started` passes the endpoint of the admin port."""
    status = WatchStatus(asks=settings.seconds > 0)
    async with cluster_program(settings.access) as running:
        watcher = Watcher(running.client, settings.request, status, dns=settings.dns, seconds=settings.seconds)
        running.nursery.start_soon(_serve_admin, running.port, status)
        running.nursery.start_soon(watcher.run)
        log.info("watching", server=running.client.cluster.server, admin=str(running.port))
        task_status.started(running.port.endpoint)
        await stopping.wait()


async def _serve_admin(port: AdminPort, status: WatchStatus) -> None:
    def readiness() -> Readiness:
        reason = status.why_not_ready()
        return Readiness(not reason, reason or f"ready, {status.describe()}")

    await port.serve(WatchCollector(status), prefix="dnsproxy", readiness=readiness, page=lambda: format_page(status))
