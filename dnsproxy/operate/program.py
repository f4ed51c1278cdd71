"""`dnsproxy operate` as a program: the steering and the stanza until a signal, with one admin port beside.

The law: all tasks live in one nursery. At the end the stanza and the route Services stay.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from functools import partial

import structlog
import trio

from dnsproxy.admin.steering_document import PATH, format_steering
from dnsproxy.install.run.survey import InstallRequest
from dnsproxy.install.watch.watcher import Watcher
from dnsproxy.install.watch.watcher_status import WatchCollector, WatchStatus, stanza_facts
from dnsproxy.operate.observe.observation import Places
from dnsproxy.operate.report.page import format_page
from dnsproxy.operate.report.steering_status import SteeringCollector, SteeringStatus
from dnsproxy.operate.steering import Steering
from sidecar.admin.answers import JSON, Answer, Readiness, Route
from sidecar.admin.port import AdminPort
from sidecar.cli.cluster_program import GRACE, ClusterAccess, cluster_program
from sidecar.cli.signals import run_until_signal
from sidecar.values.endpoints import Endpoint

log = structlog.get_logger("dnsproxy.operate")


@dataclass(frozen=True, slots=True)
class OperateSettings:
    """The settings of `dnsproxy operate`."""

    places: Places
    access: ClusterAccess
    request: InstallRequest | None = None
    """The stanza to keep; None: its owner writes it."""
    dns: Endpoint | None = None
    """The address for queries to the cluster's DNS; None: that of its Service."""
    seconds: float = 0.0
    """How long the DNS may take to load the stanza before a warning; 0: it is not asked."""


@dataclass(frozen=True, slots=True)
class _Statuses:
    steering: SteeringStatus
    stanza: WatchStatus | None

    def why_not_ready(self) -> str:
        stanza = self.stanza.why_not_ready() if self.stanza is not None else ""
        return "; ".join(filter(None, (self.steering.why_not_ready(), stanza)))


async def run_operate(settings: OperateSettings) -> int:
    """Operate until SIGTERM or SIGINT; the exit status. Raises StartError."""
    return await run_until_signal(partial(operate, settings), grace=GRACE)


async def operate(
    settings: OperateSettings,
    stopping: trio.Event,
    *,
    task_status: trio.TaskStatus[Endpoint | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Operate until `stopping` is set; `started` passes the endpoint of the admin port."""
    statuses = _Statuses(SteeringStatus(), WatchStatus(asks=settings.seconds > 0) if settings.request else None)
    async with cluster_program(settings.access) as running:
        client, nursery = running.client, running.nursery
        nursery.start_soon(_serve_admin, running.port, statuses)
        identity = f"{os.uname().nodename}_{uuid.uuid4()}"
        nursery.start_soon(Steering(client, settings.places, statuses.steering, identity=identity).run)
        if settings.request is not None and statuses.stanza is not None:
            watcher = Watcher(client, settings.request, statuses.stanza, dns=settings.dns, seconds=settings.seconds)
            nursery.start_soon(watcher.run)
        log.info("operating", server=client.cluster.server, identity=identity, admin=str(running.port))
        task_status.started(running.port.endpoint)
        await stopping.wait()


async def _serve_admin(port: AdminPort, statuses: _Statuses) -> None:
    steering, stanza = statuses.steering, statuses.stanza

    def readiness() -> Readiness:
        reason = statuses.why_not_ready()
        return Readiness(not reason, reason or "ready")

    def page() -> str:
        rows = stanza_facts(stanza) if stanza is not None else ()
        return format_page(steering, rows, why_not_ready=statuses.why_not_ready())

    async def show(_: object) -> Answer:
        await trio.lowlevel.checkpoint()
        return Answer(200, format_steering(steering.document), JSON)

    routes: dict[str, Route] = {PATH: show}
    collectors = [SteeringCollector(steering), *([WatchCollector(stanza)] if stanza is not None else [])]
    await port.serve(*collectors, prefix="dnsproxy", readiness=readiness, page=page, routes=routes)
