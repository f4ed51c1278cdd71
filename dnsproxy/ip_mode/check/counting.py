"""Counts the writes of a Service's status while it watches.

The law: a write that changes nothing has no resource version of its own and does not count, for it does no harm; a
change of the spec, of a label or of an annotation is no write of the status.
"""

from __future__ import annotations

import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.ip_mode.check.checked import Count
from dnsproxy.ip_mode.status_writers import ManagedService, StatusWriter, status_writers
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.structs.network import ServiceStatus


class Counter:
    """The state of a count: the last seen status and its writers."""

    def __init__(self) -> None:
        self.writes = 0
        self._last: tuple[ServiceStatus | None, tuple[StatusWriter, ...]] | None = None

    def take(self, service: ManagedService | Unreadable | None) -> None:
        """Count a version of the Service, if its status was written since the last one."""
        if service is None or isinstance(service, Unreadable):
            return
        seen = (service.status, status_writers(service.metadata.managed_fields))
        self.writes += self._last is not None and seen != self._last
        self._last = seen


async def count_writes(client: ApiClient, ref: ObjectRef, seconds: float) -> Count:
    """The writes of the next seconds. An API server that fails meanwhile is followed again."""
    counter = Counter()

    def take(changes: Changes[ManagedService]) -> None:
        for service in changes.values():
            counter.take(service)

    path = f"/api/v1/namespaces/{ref.namespace}/services"
    collection = Collection("Service", path, ManagedService, field_selector=f"metadata.name={ref.name}")
    with trio.move_on_after(seconds):
        await follow(client, collection, on_change=take)
    return Count(seconds, counter.writes)
