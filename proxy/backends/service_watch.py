"""Follows the Services that are backends: two watches each, and what they say becomes addresses.

The law: a thin shell over service_endpoints.py. While the API server is away, what was known last goes on to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import structlog
import trio

from proxy.backends.backend import Address, Backend, address_of
from proxy.backends.health import Cause, Failure
from proxy.backends.service_endpoints import (
    Service,
    describe_none,
    port_name,
    ready_endpoints,
    service_collection,
    slice_collection,
)
from proxy.routes import ServicePort
from proxy.settings import Settings
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.follower_status import Status
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def follow_services(
    backends: Sequence[Backend],
    settings: Settings,
    *,
    pace: Pace = DEFAULT_PACE,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep backends that are Services up to date until cancelled. Raises StartError."""
    cluster = await find_cluster(kubeconfig=settings.kubeconfig, context=settings.context, flag="--route service:...")
    async with ApiClient(cluster) as client, trio.open_nursery() as nursery:
        for one in _by_service(backends):
            nursery.start_soon(one.run, client, pace)
        task_status.started()


def _by_service(backends: Iterable[Backend]) -> list[FollowedService]:
    """One for each Service, whatever ports of it are backends."""
    found: dict[tuple[str, str], FollowedService] = {}
    for backend in backends:
        target = backend.destination
        if isinstance(target, ServicePort):
            one = found.setdefault((target.namespace, target.name), FollowedService(target.namespace, target.name))
            one.backends.append((target, backend))
    return list(found.values())


class FollowedService:
    """One Service, and the backends that are ports of it."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.backends: list[tuple[ServicePort, Backend]] = []
        self._service: Service | None = None
        self._slices: dict[str, EndpointSlice] = {}
        self._statuses = (Status(), Status())

    async def run(self, client: ApiClient, pace: Pace) -> None:
        """Follow until cancelled."""
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
                self._pass_over("Service", key, service)
            else:
                self._service = service
        self._update()

    def _take_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        for key, one in changes.items():
            if isinstance(one, Unreadable):
                self._pass_over("EndpointSlice", key, one)
            elif one is None:
                self._slices.pop(key, None)
            else:
                self._slices[key] = one
        self._update()

    def _pass_over(self, kind: str, key: str, one: Unreadable) -> None:
        # What was last known of it is a better guess than nothing.
        log.warning("object is unreadable and passed over", kind=kind, object=key, error=one.reason)

    def _update(self) -> None:
        """Put what is known into the backends, once both watches have told everything."""
        if all(status.synced for status in self._statuses):
            for target, backend in self.backends:
                backend.take(self._stands_for(target))

    def _stands_for(self, target: ServicePort) -> list[Address] | Failure:
        slices = self._slices.values()
        try:
            port = port_name(self._service, target.port)
        except ValueError as error:
            return Failure(Cause.NO_ENDPOINTS, str(error))
        found = ready_endpoints(slices, port)
        if not found:
            return Failure(Cause.NO_ENDPOINTS, describe_none(target, slices, port))
        return [address_of(one.host, one.port) for one in found]

    def _describe_pending(self) -> Failure:
        told = "; ".join(f"{status.kind}: {status.describe()}" for status in self._statuses if not status.synced)
        return Failure(Cause.NOT_SYNCED, told)
