"""Follows the Services of our own namespace, and sets which of them answer for a class or a Gateway.

The law: a thin shell over steering.py. The last known steering counts through every outage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from dnsproxy.sources.steering import Steering, SteeringService, find_steering, steering_collection
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace


class SteeringFollower:
    """The steering of one namespace; run() must be running. `on_change` gets it, once all Services were read."""

    def __init__(
        self,
        namespace: str,
        *,
        known: Steering,
        on_change: Callable[[Steering], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self.status = FollowerStatus()
        self.steering = known
        self._namespace = namespace
        self._on_change = on_change
        self._on_synced = on_synced
        self._pace = pace
        self._services: dict[str, SteeringService | Unreadable] = {}
        self._log = structlog.get_logger("dnsproxy.targets")

    async def run(self, client: ApiClient) -> None:
        """Follow until cancelled."""
        await follow(
            client,
            steering_collection(self._namespace),
            on_change=self._take,
            on_synced=self._note_synced,
            status=self.status,
            expected=len(self.steering.services),
            pace=self._pace,
        )

    def _take(self, changes: Mapping[str, SteeringService | Unreadable | None]) -> None:
        for key, one in changes.items():
            if one is None:
                self._services.pop(key, None)
            else:
                self._services[key] = one
        if self.status.synced:
            self._settle()

    def _note_synced(self) -> None:
        self._settle()
        self._on_synced()

    def _settle(self) -> None:
        before, found = self.steering, find_steering(self._services)
        if found == before:
            return
        self.steering = found
        for key, fault in found.faults.items():
            if before.faults.get(key) != fault:
                self._log.warning("the annotation of a Service does not count", service=key, cause=fault)
        if found.services != before.services:
            self._log.info("names are steered", services=dict(found.services))
        self._on_change(found)
