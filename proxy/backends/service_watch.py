"""Watches the Services that are backends, each from its first backend to its last.

The law: tasks without decisions. All ports of a Service share its two watches. Also tested in
tests/peers/test_services_apiserver.py, with a real API server.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from proxy.backends.backend import Backend
from proxy.backends.followed_service import FollowedService
from proxy.routes import ServicePort
from proxy.settings import Settings
from sidecar.kubernetes.config import find_cluster
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace


async def follow_services(
    backends: Sequence[Backend],
    settings: Settings,
    *,
    pace: Pace = DEFAULT_PACE,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Keep the addresses of Services current until cancelled. Raises StartError."""
    cluster = await find_cluster(kubeconfig=settings.kubeconfig, context=settings.context, flag="--route service:...")
    watches = ServiceWatches(pace=pace)
    for backend in backends:
        watches.add(backend)
    async with ApiClient(cluster) as client:
        task_status.started()
        await watches.run(client)


class ServiceWatches:
    """The Services that are backends; run() must be running for their addresses to be known."""

    def __init__(self, *, pace: Pace = DEFAULT_PACE) -> None:
        self._pace = pace
        self._followed: dict[tuple[str, str], FollowedService] = {}
        self._added: list[FollowedService] = []
        """Those without a task."""
        self._changed = trio.Event()

    def __len__(self) -> int:
        """How many Services are followed; each has two watches."""
        return len(self._followed)

    def add(self, backend: Backend, *, holds: bool = False) -> None:
        """Keep the addresses of a backend that is a Service current; with `holds`, new endpoints are held back."""
        port = _port_of(backend)
        one = self._followed.get((port.namespace, port.name))
        if one is None:
            one = self._followed[port.namespace, port.name] = FollowedService(port.namespace, port.name)
            self._added.append(one)
            self._changed.set()
        one.add(port, backend, holds=holds)

    def remove(self, backend: Backend) -> None:
        """Leave a backend with its last addresses; its Service is watched for its other backends, if it has any."""
        port = _port_of(backend)
        one = self._followed[port.namespace, port.name]
        one.remove(backend)
        if not len(one):
            del self._followed[port.namespace, port.name]
            # Without a task yet, it gets none: a port that cannot be opened takes its backend for a moment, again and
            # again.
            self._added = [other for other in self._added if other is not one]
            one.life.cancel()

    async def run(self, client: ApiClient) -> None:
        """Watch until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._changed = trio.Event()
                added, self._added = self._added, []
                for one in added:
                    nursery.start_soon(one.run, client, self._pace)
                await self._changed.wait()


def _port_of(backend: Backend) -> ServicePort:
    assert isinstance(backend.destination, ServicePort)  # noqa: S101  # the caller has checked it
    return backend.destination
