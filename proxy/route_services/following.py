"""Follows the route Services of one namespace, and the Services and EndpointSlices of their backends.

The law: tasks without decisions, over one client of the API server. Tested in
tests/peers/test_routes_apiserver.py, with a real API server.
"""

from __future__ import annotations

from dataclasses import dataclass

import trio

from proxy.backends.service_watch import ServiceWatches
from proxy.route_services.open_ports import OpenPorts
from proxy.route_services.ports import Fixed, Ports
from proxy.route_services.table import RouteTable
from proxy.settings import RouteServices, Settings
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.relay_routes import route_service_collection
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

FLAG = "--routes-from services"


@dataclass(frozen=True, slots=True)
class FollowedRoutes:
    """The routes from Services of one process, before anything is followed."""

    settings: RouteServices
    table: RouteTable
    watches: ServiceWatches
    pace: Pace

    async def run(
        self,
        settings: Settings,
        stopping: trio.Event,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow until cancelled; ports open and close until `stopping`. Raises StartError without a cluster."""
        cluster = await find_cluster(kubeconfig=settings.kubeconfig, context=settings.context, flag=FLAG)
        async with ApiClient(cluster) as client:
            task_status.started()
            await self.follow(client, stopping)

    async def follow(self, client: ApiClient, stopping: trio.Event) -> None:
        """The same with an open client."""
        namespace = self.settings.namespace or client.cluster.namespace
        table = self.table
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.watches.run, client)
            nursery.start_soon(table.keep, stopping)
            await follow(
                client,
                route_service_collection(namespace),
                on_change=table.take,
                on_synced=table.wake,
                status=table.status,
                pace=self.pace,
            )


def follow_routes(
    settings: RouteServices, ports: Ports, fixed: Fixed, *, quiet: bool = False, pace: Pace = DEFAULT_PACE
) -> FollowedRoutes:
    """The routes from Services of a process with these ports; with `quiet`, another process logs their changes."""
    watches = ServiceWatches(pace=pace)
    opened = OpenPorts(ports, watches, fixed, quiet=quiet)
    table = RouteTable(opened, reserved=settings.reserved, quiet=quiet)
    return FollowedRoutes(settings, table, watches, pace)
