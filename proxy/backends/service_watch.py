"""Watches the Services that are backends: the Service and its EndpointSlices become addresses.

The law: tasks without decisions; service_endpoints.py decides. While the API server is unavailable, the last addresses
stay. Tested in tests/peers/test_services_apiserver.py, with a real API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import structlog
import trio

from proxy.backends.backend import Address, Backend, address_of
from proxy.backends.health import Cause, Failure
from proxy.backends.service_endpoints import (
    describe_none,
    port_name,
    service_collection,
    slice_collection,
    usable_endpoints,
)
from proxy.routes import ServicePort
from proxy.settings import Settings
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def follow_services(
    backends: Sequence[Backend],
    settings: Settings,
    *,
    pace: Pace = DEFAULT_PACE,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep the addresses of Services current until cancelled. Raises StartError."""
    cluster = await find_cluster(kubeconfig=settings.kubeconfig, context=settings.context, flag="--route service:...")
    async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
        for one in _by_service(backends):
            nursery.start_soon(one.run, client, pace)
        task_status.started()


def _by_service(backends: Iterable[Backend]) -> list[FollowedService]:
    """One for each Service; several of its ports may be backends."""
    found: dict[tuple[str, str], FollowedService] = {}
    for backend in backends:
        port = backend.destination
        if isinstance(port, ServicePort):
            one = found.setdefault((port.namespace, port.name), FollowedService(port.namespace, port.name))
            one.backends.append((port, backend))
    return list(found.values())


class FollowedService:
    """One Service, and the backends that are its ports."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.backends: list[tuple[ServicePort, Backend]] = []
        self._service: Service | None = None
        self._slices: dict[str, EndpointSlice] = {}
        self._statuses = (FollowerStatus(), FollowerStatus())

    async def run(self, client: ApiClient, pace: Pace) -> None:
        """Watch the Service until cancelled."""
        for _, backend in self.backends:
            backend.pending = self._describe_pending
        services, slices = self._statuses
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                partial(
                    follow,
                    client,
                    service_collection(self.namespace, self.name),
                    on_change=self._take_service,
                    on_synced=self._update,
                    status=services,
                    pace=pace,
                )
            )
            await follow(
                client,
                slice_collection(self.namespace, self.name),
                on_change=self._take_slices,
                on_synced=self._update,
                status=slices,
                pace=pace,
            )

    def _take_service(self, changes: Mapping[str, Service | Unreadable | None]) -> None:
        for key, service in changes.items():
            if isinstance(service, Unreadable):
                self._ignore("Service", key, service)
            else:
                self._service = service
        self._update()

    def _take_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        for key, one in changes.items():
            if isinstance(one, Unreadable):
                self._ignore("EndpointSlice", key, one)
            elif one is None:
                self._slices.pop(key, None)
            else:
                self._slices[key] = one
        self._update()

    def _ignore(self, kind: str, key: str, one: Unreadable) -> None:
        # Its last readable version is better than none.
        log.warning("unreadable object ignored", kind=kind, object=key, error=one.reason)

    def _update(self) -> None:
        """Update the backends, once both watches have synced."""
        if all(status.synced for status in self._statuses):
            for wanted, backend in self.backends:
                backend.take(self._addresses_of(wanted))

    def _addresses_of(self, wanted: ServicePort) -> list[Address] | Failure:
        slices = self._slices.values()
        try:
            port = port_name(self._service, wanted.port)
        except ValueError as error:
            return Failure(Cause.NO_ENDPOINTS, str(error))
        found = usable_endpoints(slices, port)
        if not found:
            return Failure(Cause.NO_ENDPOINTS, describe_none(wanted, slices, port))
        return [address_of(one.host, one.port) for one in found]

    def _describe_pending(self) -> Failure:
        pending = "; ".join(f"{status.kind}: {status.describe()}" for status in self._statuses if not status.synced)
        return Failure(Cause.NOT_SYNCED, pending)
