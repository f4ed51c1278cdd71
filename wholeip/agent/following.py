"""Follows the Services with our label, their EndpointSlices, and the nodes and networks of a cluster.

The law: all decisions are in mappings/cluster_state.py. While the API server is unreachable, the last known objects
stay valid. The kernel's table from an earlier run gives the expected number, so that a list that lost most objects is
confirmed first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog
import trio

from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace
from sidecar.values.exit_status import ExitStatus
from wholeip.agent.api_addresses import api_addresses
from wholeip.mappings.api_server import API_SERVICE, API_SLICES, SERVICE_RANGES
from wholeip.mappings.cluster_networks import StatedNetworks
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.endpoints import slice_collection
from wholeip.mappings.nodes import NODES
from wholeip.mappings.pods import PODS, Proof
from wholeip.mappings.services import service_collection
from wholeip.settings import ClusterSettings

T = TypeVar("T", bound=Resource)

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


async def open_client(settings: ClusterSettings) -> ApiClient:
    """A client for the cluster of the settings, not opened yet. Raises StartError with status 3."""
    found = await find_cluster(kubeconfig=settings.kubeconfig, context=settings.context, status=ExitStatus.UNKNOWN)
    return ApiClient(found)


async def new_state(settings: ClusterSettings, client: ApiClient) -> ClusterState:
    """A state without objects, with the networks of the flags and the addresses of the API server."""
    stated = StatedNetworks(
        settings.networks, settings.protected, settings.allowed, await api_addresses(client.cluster.server)
    )
    return ClusterState(node=settings.node_name, stated=stated, proof=settings.endpoints)


class ClusterFollower:
    """Updates a state; calls `on_change` after each change, and once when all objects are known."""

    def __init__(
        self,
        state: ClusterState,
        proxy_name: str,
        *,
        on_change: Callable[[], None],
        expected: int = 0,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        """`expected` is the approximate number of Services in an earlier run."""
        kinds = ("Service", "EndpointSlice", "Node", API_SERVICE.kind, API_SLICES.kind, SERVICE_RANGES.kind)
        pods = (PODS.kind,) if state.proof is Proof.VERIFIED else ()
        self.statuses = tuple(map(FollowerStatus, (*kinds, *pods)))
        self._state = state
        self._proxy_name = proxy_name
        self._on_change = on_change
        self._expected = expected
        self._pace = pace

    async def run(self, client: ApiClient) -> None:
        """Follow until cancelled."""
        services, slices, nodes, api_service, api_slices, ranges, *pods = self.statuses
        state, name, expected = self._state, self._proxy_name, self._expected
        async with trio.open_nursery() as nursery:
            start = nursery.start_soon
            start(self._follow, client, service_collection(name), state.change_services, services, expected)
            start(self._follow, client, slice_collection(name), state.change_slices, slices, expected)
            # The cluster has at least the node that this runs on.
            start(self._follow, client, NODES, state.change_nodes, nodes, 1)
            start(self._follow, client, API_SERVICE, state.change_api_services, api_service, 0)
            start(self._follow, client, API_SLICES, state.change_api_slices, api_slices, 0)
            start(self._follow, client, SERVICE_RANGES, state.change_ranges, ranges, 0)
            for status in pods:
                # At least one for each Service that had its address.
                start(self._follow, client, PODS, state.change_pods, status, expected)

    async def _follow(
        self,
        client: ApiClient,
        collection: Collection[T],
        change: Callable[[Changes[T]], None],
        status: FollowerStatus,
        expected: int,
    ) -> None:
        def take(changes: Changes[T]) -> None:
            for key, one in changes.items():
                if isinstance(one, Unreadable):
                    log.warning("object is unreadable", kind=collection.kind, object=key, error=one.reason)
            change(changes)
            self._on_change()

        await follow(
            client,
            collection,
            on_change=take,
            on_synced=self._on_change,
            status=status,
            expected=expected,
            pace=self._pace,
        )
