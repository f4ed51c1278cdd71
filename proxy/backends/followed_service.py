"""One Service that is a backend: the Service and its EndpointSlices become the addresses of its ports.

The law: a task without decisions; service_endpoints.py and hold_back.py decide. While the API server is unavailable,
the last addresses stay. Also tested in tests/peers/test_services_apiserver.py, with a real API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

import structlog
import trio

from proxy.backends.backend import Backend, address_of
from proxy.backends.health import Cause, Failure
from proxy.backends.hold_back import Choice, Seen, choose, choose_all, note_seen
from proxy.backends.service_endpoints import (
    describe_none,
    find_targets,
    port_name,
    service_collection,
    slice_collection,
)
from proxy.routes import ServicePort
from sidecar.kubernetes.endpoint_choice import Usable
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.network import Service
from sidecar.kubernetes.watch_policy import Pace

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(slots=True)
class _Member:
    """A backend that is a port of the Service."""

    port: ServicePort
    backend: Backend
    holds: bool
    """Whether new endpoints are held back."""
    seen: Seen = field(default_factory=dict)

    def choose(self, usable: Usable, *, now: float) -> Choice:
        if not self.holds:
            return choose_all(usable)
        self.seen = note_seen(self.seen, usable, now=now)
        return choose(usable, self.seen, now=now)


class FollowedService:
    """One Service, and the backends that are its ports."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.life = trio.CancelScope()
        """Cancelled when no backend is left."""
        self._members: dict[Backend, _Member] = {}
        self._service: Service | None = None
        self._slices: dict[str, EndpointSlice] = {}
        self._statuses = (FollowerStatus(), FollowerStatus())
        self._due = inf
        """When the next hold ends, on trio's clock."""
        self._updated = trio.Event()

    def __len__(self) -> int:
        return len(self._members)

    def add(self, port: ServicePort, backend: Backend, *, holds: bool) -> None:
        """Keep the addresses of a backend current. If the Service is known already, it has them at once."""
        backend.pending = self._describe_pending
        self._members[backend] = _Member(port, backend, holds)
        self._update()

    def remove(self, backend: Backend) -> None:
        """Leave a backend with its last addresses."""
        del self._members[backend]

    async def run(self, client: ApiClient, pace: Pace) -> None:
        """Watch the Service until `life` is cancelled."""
        services, slices = self._statuses
        with self.life:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_holds)
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

    async def _end_holds(self) -> None:
        while True:
            updated = self._updated = trio.Event()
            with trio.move_on_at(self._due):
                await updated.wait()
            if self._due <= trio.current_time():
                self._update()

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
            self._due = min((self._update_one(member) for member in self._members.values()), default=inf)
            self._updated.set()

    def _update_one(self, member: _Member) -> float:
        """Update a backend; returns when its next hold ends."""
        slices = self._slices.values()
        try:
            port = port_name(self._service, member.port.port)
            usable = find_targets(self._service, member.port.port, slices)
        except ValueError as error:
            member.backend.take(Failure(Cause.NO_ENDPOINTS, str(error)))
            return inf
        choice = member.choose(usable, now=trio.current_time())
        if choice.used:
            used, held = ([address_of(one.host, one.port) for one in part] for part in (choice.used, choice.held))
            member.backend.take(used, held=held)
        else:
            member.backend.take(Failure(Cause.NO_ENDPOINTS, describe_none(member.port, slices, port)))
        return choice.until

    def _describe_pending(self) -> Failure:
        pending = "; ".join(f"{status.kind}: {status.describe()}" for status in self._statuses if not status.synced)
        return Failure(Cause.NOT_SYNCED, pending)
