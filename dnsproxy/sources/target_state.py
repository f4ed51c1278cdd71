"""What is known of one target Service: the Service itself, and its EndpointSlices.

The law: pure, and it only changes by what was read. Without the slices, because RBAC hides them or the API server does
not deliver them, the Service's addresses count as if all endpoints were ready.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsproxy.sources.target_endpoints import endpoint_fault, reachable_addresses
from dnsproxy.sources.target_service import Service, addresses_of, fault_of
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.objects import Unreadable


class TargetState:
    """One target Service as of the last reports about it."""

    def __init__(self) -> None:
        self.service: Service | Unreadable | None = None
        self.service_read = False
        self.slices_read = False
        """Whether `slices` are all of the Service's."""
        self._slices: dict[str, EndpointSlice | Unreadable] = {}

    def take_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        """Apply changes of the EndpointSlices, by key."""
        for key, one in changes.items():
            if one is None:
                self._slices.pop(key, None)
            else:
                self._slices[key] = one

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses behind which an endpoint is ready; all if there is none."""
        return self._reachable or addresses_of(self.service)

    @property
    def unready(self) -> bool:
        """Whether it has addresses, but none of them leads to a ready endpoint."""
        return bool(addresses_of(self.service)) and not self._reachable

    @property
    def _reachable(self) -> tuple[str, ...]:
        if not self.slices_read:
            is_local = isinstance(self.service, Service) and self.service.is_local
            return () if is_local else addresses_of(self.service)
        return reachable_addresses(self.service, self._slices.values())

    @property
    def fault(self) -> str | None:
        """Why it cannot be a target at the moment; None if it can."""
        if self.unready and isinstance(self.service, Service):
            return endpoint_fault(self.service, self._slices.values())
        return fault_of(self.service)
