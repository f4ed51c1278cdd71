"""Follows the Services that targets name, each by a watch of its own, and says what their addresses are.

The law: a thin shell over service.py. What a Service was last known to have counts through every outage; one that is
gone, headless or without an address has none, which is told once and forwards the names that point there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

import structlog
import trio

from dnsproxy.sources.service import Service, addresses_of, fault_of, service_collection
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.status import Status
from sidecar.kubernetes.steps import DEFAULT_PACE, Pace

Addresses = Mapping[str, tuple[str, ...]]
"""By `NAMESPACE/NAME`."""


class ServiceTargets:
    """The addresses of the Services that are wanted; run() must be running."""

    def __init__(
        self,
        client: ApiClient,
        *,
        on_change: Callable[[Addresses], None],
        on_synced: Callable[[], None] = lambda: None,
        known: Addresses = MappingProxyType({}),
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        """`known` is what an earlier run knew; it counts until the API server has answered for each Service."""
        self.statuses: dict[str, Status] = {}
        self.faults: dict[str, str] = {}
        """Why a Service that is wanted has no address."""
        self._client = client
        self._on_change = on_change
        self._on_synced = on_synced
        self._pace = pace
        self._addresses = dict(known)
        self._remembered = set(known)
        self._wanted: dict[str, None] = {}
        self._nursery: trio.Nursery | None = None
        self._log = structlog.get_logger("dnsproxy.targets")

    @property
    def synced(self) -> bool:
        """Whether every Service that is wanted was asked for."""
        return len(self.statuses) == len(self._wanted) and all(status.synced for status in self.statuses.values())

    def want(self, keys: Iterable[str]) -> None:
        """Follow these Services too, from now on."""
        new = [key for key in keys if key not in self._wanted]
        self._wanted |= dict.fromkeys(new)
        if self._nursery is not None:
            for key in new:
                self._nursery.start_soon(self._follow, key)

    async def run(self) -> None:
        """Follow what is wanted until cancelled."""
        async with trio.open_nursery() as nursery:
            # Kept so that a Service which an object names later can be followed; all end with run().
            self._nursery = nursery
            for key in self._wanted:
                nursery.start_soon(self._follow, key)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def _follow(self, key: str) -> None:
        status = self.statuses[key] = Status()
        await follow(
            self._client,
            service_collection(key),
            on_change=partial(self._take, key),
            on_synced=partial(self._note_synced, key),
            status=status,
            expected=int(key in self._remembered),
            pace=self._pace,
        )

    def _take(self, key: str, changes: Mapping[str, Service | Unreadable | None]) -> None:
        self._remembered.discard(key)
        for service in changes.values():
            self._note_fault(key, fault_of(service))
            found = addresses_of(service)
            if found != self._addresses.get(key, ()):
                self._addresses[key] = found
                self._log.info("target has addresses", service=key, addresses=list(found))
                self._on_change(dict(self._addresses))

    def _note_synced(self, key: str) -> None:
        if key in self._remembered:
            self._remembered.discard(key)
            del self._addresses[key]
            self._on_change(dict(self._addresses))
        if key not in self._addresses and key not in self.faults:
            self._note_fault(key, fault_of(None))
        self._on_synced()

    def _note_fault(self, key: str, fault: str | None) -> None:
        if fault is None:
            self.faults.pop(key, None)
        elif self.faults.get(key) != fault:
            self.faults[key] = fault
            self._log.warning("target has no address; names that point there are forwarded", service=key, cause=fault)
