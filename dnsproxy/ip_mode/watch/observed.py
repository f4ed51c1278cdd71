"""What a watcher sees of one Service: its load balancer's entries, who wrote them, and the patch that they need.

The law: an entry needs a write only if it has an address and its ipMode differs; a Service that is not of type
LoadBalancer needs none. Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_patch import Operation, make_patch
from dnsproxy.ip_mode.status_writers import ManagedService, status_writers
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.network import LoadBalancerPoint

NO_MODE: Final = "none"


@dataclass(frozen=True, slots=True)
class Observed:
    """A Service at one resource version."""

    uid: str
    resource_version: str
    entries: tuple[LoadBalancerPoint, ...] = ()
    writer: str = ""
    """The field manager that wrote the entries last; empty if that is unknown."""
    why_waiting: str = ""
    """The reason why there is nothing to write yet, such as `it has no address`."""
    why_refused: str = ""
    """The reason why ipMode must not be written."""

    @property
    def patch(self) -> list[Operation]:
        """The operations to send; empty if there is nothing to write."""
        if self.why_waiting:
            return []
        return make_patch(self.entries, mode=PROXY, resource_version=self.resource_version)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those of the load balancer, in the order of the status."""
        return tuple(entry.ip for entry in self.entries if entry.ip)

    @property
    def modes(self) -> Counter[str]:
        """How many entries with an address have each ipMode."""
        return Counter(entry.ip_mode or NO_MODE for entry in self.entries if entry.ip)


def observe(service: ManagedService | Unreadable, *, why_refused: str = "") -> Observed:
    """A Service as the API server sent it."""
    version = service.metadata.resource_version
    if isinstance(service, Unreadable):
        return Observed("", version, why_refused=f"it cannot be read: {service.reason}")
    balancer = service.status.load_balancer if service.status else None
    entries = (balancer.ingress if balancer else None) or ()
    writers = status_writers(service.metadata.managed_fields)
    writer = writers[0].manager if writers else ""
    return Observed(service.metadata.uid, version, entries, writer, _why_waiting(service, entries), why_refused)


def _why_waiting(service: ManagedService, entries: tuple[LoadBalancerPoint, ...]) -> str:
    kind = (service.spec.type if service.spec else None) or "ClusterIP"
    if kind != "LoadBalancer":
        return f"its type is {kind}"
    if not any(entry.ip for entry in entries):
        return "its status has hostnames alone, which have no ipMode" if entries else "it has no address yet"
    return ""
