"""`dnsproxy install --watch` as a program: a watcher until a signal, with an admin port beside.

The law: all tasks live in one nursery. At the end the stanza stays; `dnsproxy uninstall` removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.install.run.survey import InstallRequest
from dnsproxy.install.watch.watcher import Watcher
from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus, format_page
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.admin.server import Readiness
from sidecar.cli.signals import run_until_signal
from sidecar.values.endpoints import Endpoint

GRACE: Final = 1.0
"""Seconds after a signal. There is nothing to finish: a write is made completely or not at all."""

log = structlog.get_logger("dnsproxy.install")


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The settings of `dnsproxy install --watch`."""

    request: InstallRequest
    kubeconfig: str | None = None
    context: str | None = None
    dns: Endpoint | None = None
    """The address for queries to the cluster's DNS; None: that of its Service."""
    seconds: float = 0.0
    """How long it may take to load the stanza before a warning; 0: it is not asked."""
    admin: Endpoint | None = None
    admin_hosts: tuple[str, ...] = ()
    """The names by which the admin port may be asked."""


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
    with open_admin_port(settings.admin, hosts=settings.admin_hosts) as port:
        async with (
            await load_client(kubeconfig=settings.kubeconfig, context=settings.context) as client,
            trio.open_nursery() as nursery,
        ):
            watcher = Watcher(client, settings.request, status, dns=settings.dns, seconds=settings.seconds)
            nursery.start_soon(_serve_admin, port, status)
            nursery.start_soon(watcher.run)
            log.info("watching", server=client.cluster.server, admin=str(port))
            task_status.started(port.endpoint)
            await stopping.wait()
            nursery.cancel_scope.cancel()


async def _serve_admin(port: AdminPort, status: WatchStatus) -> None:
    def readiness() -> Readiness:
        reason = status.why_not_ready()
        return Readiness(not reason, reason or f"ready, {status.describe()}")

    await port.serve(WatchCollector(status), readiness=readiness, page=lambda: format_page(status))
