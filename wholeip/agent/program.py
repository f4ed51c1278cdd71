"""The agent as a program: follows a cluster and reconciles the kernel's table until a signal, with an admin port.

The law: all tasks run in one nursery; the rules stay in the kernel unless --remove-on-exit is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import structlog
import trio

from sidecar.admin.answers import JSON, Answer
from sidecar.admin.page.history import History
from sidecar.admin.page.live import live_route
from sidecar.admin.port import AdminPort, open_admin_port
from sidecar.admin.server import Readiness
from sidecar.cli.signals import run_until_signal
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.values.endpoints import Endpoint
from wholeip.agent.api_addresses import follow_api_addresses
from wholeip.agent.document import format_json, show
from wholeip.agent.flow_ender import EndFlows, FlowEnder
from wholeip.agent.following import ClusterFollower, new_state, open_client
from wholeip.agent.metrics import AgentCollector
from wholeip.agent.pace import ReconcilePace
from wholeip.agent.page import CHARTS, agent_facts, read_counters, render_page
from wholeip.agent.reconciler import Reconciler
from wholeip.agent.status import AgentStatus
from wholeip.kernel.conntrack import end_flows
from wholeip.kernel.nft import Nft, Table
from wholeip.mappings.addresses import Address
from wholeip.ruleset.nft_errors import NftFailed
from wholeip.service_events.writer import EventWriter
from wholeip.settings import RunSettings

GRACE: Final = 5.0
"""Seconds after a signal, for a transaction in progress."""
_FLOW_SECONDS: Final = 3.0
"""Of these, for flows that the last updates no longer allow."""
log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


async def run_agent(settings: RunSettings) -> int:
    """Run until SIGTERM or SIGINT; the exit status. Raises StartError."""
    client = await open_client(settings.cluster)
    return await run_until_signal(partial(serve, settings, client, Nft(), end_flows=end_flows), grace=GRACE)


async def serve(
    settings: RunSettings,
    client: ApiClient,
    table: Table,
    stopping: trio.Event,
    *,
    end_flows: EndFlows,
    pace: Pace = DEFAULT_PACE,
    task_status: trio.TaskStatus[Endpoint | None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run until `stopping` is set; its start value is the endpoint of the admin port. Raises StartError."""
    cluster = settings.cluster
    state = await new_state(cluster, client)
    status = AgentStatus(node=cluster.node_name)
    ender = FlowEnder(end_flows, status, connections=settings.end_connections) if settings.end_flows else None
    events = EventWriter(client, cluster.node_name or "", lambda: state.nodes) if settings.events else None
    reconciler = Reconciler(
        table,
        state,
        status,
        pace=ReconcilePace(resync=settings.resync),
        on_applied=ender.note if ender else None,
        on_reports=events.note if events else None,
    )

    def take_api_addresses(addresses: frozenset[Address]) -> None:
        state.add_api_addresses(addresses)
        reconciler.wake()

    with open_admin_port(settings.admin, hosts=settings.admin_hosts) as port:
        known = await reconciler.begin()
        follower = ClusterFollower(state, cluster.proxy_name, on_change=reconciler.wake, expected=known, pace=pace)
        status.watches = follower.statuses
        async with client, trio.open_nursery() as nursery:
            nursery.start_soon(_serve_admin, port, status)
            nursery.start_soon(reconciler.run)
            if ender:
                nursery.start_soon(ender.run)
            if events:
                nursery.start_soon(events.run)
            nursery.start_soon(follower.run, client)
            nursery.start_soon(follow_api_addresses, client, state.api_addresses, take_api_addresses)
            log.info(
                "running",
                proxy_name=cluster.proxy_name,
                node=cluster.node_name,
                addresses_before=known,
                admin=str(port),
            )
            task_status.started(port.endpoint)
            await stopping.wait()
            status.stopping = True
            nursery.cancel_scope.cancel()
    if settings.remove_on_exit:
        await _remove(table)
    else:
        log.info("stopped; the rules stay until `wholeip uninstall`", mappings=status.plan.mapping_count)
    if ender:
        with trio.move_on_after(_FLOW_SECONDS):
            await ender.finish()


async def _remove(table: Table) -> None:
    try:
        await table.delete_table()
    except NftFailed as error:
        log.warning("cannot remove the rules", cause=str(error))
    else:
        log.info("stopped; the rules are removed")


async def _serve_admin(port: AdminPort, status: AgentStatus) -> None:
    def mappings(_query: Mapping[str, str]) -> Answer:
        return Answer(200, format_json(show(status)).encode(), JSON)

    history = History(CHARTS)
    await port.serve(
        AgentCollector(status),
        prefix="wholeip",
        readiness=lambda: Readiness(not status.why_not_ready(), status.describe()),
        page=lambda: render_page(status, history),
        routes={"/mappings": mappings, **live_route(history, lambda: agent_facts(status))},
        samples=(history, lambda: read_counters(status)),
    )
