"""`dnsproxy ip-mode --watch` as a program: a watcher for each named Service until a signal, with an admin port beside.

The law: all tasks live in one nursery. A Service that must not get ipMode ends the start, if the API server can say so
by then, and is refused later otherwise. At the end every status stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.structs import Node
from dnsproxy.ip_mode.status_writers import ManagedService
from dnsproxy.ip_mode.watch.safety import why_refused
from dnsproxy.ip_mode.watch.service_watcher import LOGGER, Judge, ServiceWatcher, collection_of
from dnsproxy.ip_mode.watch.watch_status import IpModeCollector, ServiceStatus, format_page, why_not_ready
from sidecar.admin.port import AdminPort
from sidecar.admin.server import Readiness
from sidecar.cli.cluster_program import GRACE, ClusterAccess, cluster_program
from sidecar.cli.signals import run_until_signal
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.one_shot import list_all
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_AT_START: Final = Pace(list_timeout=5.0)
_FEW_NODES: Final = 50

log = structlog.get_logger(LOGGER)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """The settings of `dnsproxy ip-mode --watch`."""

    services: tuple[ObjectRef, ...]
    access: ClusterAccess
    ends_connections: bool = False
    """The user's word that the load balancers of the Services end the TCP connection."""


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
    statuses = [ServiceStatus(ref) for ref in dict.fromkeys(settings.services)]
    async with cluster_program(settings.access) as running:
        client, nursery = running.client, running.nursery
        scheme = await _scheme_of_nodes(client)
        judge = partial(why_refused, scheme=scheme, ends_connections=settings.ends_connections)
        await _refuse(client, statuses, judge)
        nursery.start_soon(_serve_admin, running.port, statuses)
        for status in statuses:
            nursery.start_soon(ServiceWatcher(client, status, judge=judge).run)
        names = [str(status.ref) for status in statuses]
        log.info("watching", server=client.cluster.server, services=names, admin=str(running.port))
        task_status.started(running.port.endpoint)
        await stopping.wait()


async def _refuse(client: ApiClient, statuses: Sequence[ServiceStatus], judge: Judge) -> None:
    """Raises StartError with a line for each Service that must not get ipMode; one that cannot be read may start."""
    reasons = []
    for status in statuses:
        try:
            found = await list_all(client, collection_of(status), pace=_AT_START)
        except ApiError as error:
            log.warning("not read at start", service=str(status.ref), cause=str(error))
            continue
        whys = [judge(service) for service in found.values() if isinstance(service, ManagedService)]
        reasons += [f"{status.ref}: {why}" for why in whys if why]
    if reasons:
        raise StartError("\n".join(reasons), status=ExitStatus.NO)


async def _scheme_of_nodes(client: ApiClient) -> str:
    """The scheme of the nodes' providerID; empty if no node has one, or without the right to list nodes."""
    try:
        nodes = await list_all(client, Collection("Node", "/api/v1/nodes", Node), pace=_AT_START, most=_FEW_NODES)
    except ApiError:
        return ""
    ids = [node.spec.provider_id or "" for node in nodes.values() if isinstance(node, Node) and node.spec]
    return next((re.split(r"[:.]", one, maxsplit=1)[0] for one in ids if one), "")


async def _serve_admin(port: AdminPort, statuses: Sequence[ServiceStatus]) -> None:
    def readiness() -> Readiness:
        why = why_not_ready(statuses)
        return Readiness(not why, why or "ready")

    page = partial(format_page, statuses)
    await port.serve(IpModeCollector(statuses), prefix="dnsproxy", readiness=readiness, page=page)
