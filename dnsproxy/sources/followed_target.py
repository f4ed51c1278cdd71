"""One target Service that is followed: its two watches, and when enough was read to decide about its addresses.

The law: a thin shell over target_state.py. Nothing is reported before the Service and its EndpointSlices were read;
slices that cannot be read do not keep a Service from being a target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
import trio

from dnsproxy.sources.target_endpoints import slice_collection
from dnsproxy.sources.target_service import Service, service_collection
from dnsproxy.sources.target_state import TargetState
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.watch_policy import Pace

PATIENCE: Final = 5.0
"""Seconds that the EndpointSlices of a Service that was read are waited for."""

_UNKNOWN: Final = "its EndpointSlices cannot be read, so its names are answered whether or not a pod is ready"


class FollowedTarget:
    """One Service `NAMESPACE/NAME`; run() must be running.

    `on_report` is called after each change, once all was read; `on_synced` after each whole list.
    """

    def __init__(
        self,
        key: str,
        *,
        on_report: Callable[[FollowedTarget], None],
        on_synced: Callable[[], None],
        expected: int = 0,
    ) -> None:
        self.key = key
        self.life = trio.CancelScope()
        self.is_given_up = False
        """The first sync does not wait for it any more."""
        self._state = TargetState()
        self._service = FollowerStatus()
        self._slices = FollowerStatus()
        self._service_read = trio.Event()
        self._without_slices = False
        """The EndpointSlices are not waited for any more."""
        self._on_report = on_report
        self._on_synced = on_synced
        self._expected = expected
        """How many objects of each kind there were in an earlier run."""

    @property
    def statuses(self) -> list[FollowerStatus]:
        """How the watches are doing."""
        return [self._service, self._slices]

    @property
    def is_known(self) -> bool:
        """Whether all was read that decides about its addresses."""
        return self._service.synced and (self._slices.synced or self._without_slices)

    @property
    def is_doubted(self) -> bool:
        """Whether something that was read waits for a confirmation."""
        return self._service.doubted or self._slices.doubted

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that names may be answered with."""
        return self._state.addresses

    @property
    def unready(self) -> bool:
        """Whether it has addresses, but no ready endpoint."""
        return self._state.unready

    @property
    def fault(self) -> str | None:
        """Why it has no address at the moment, or what is not known about it; None if all is well."""
        return self._state.fault or (_UNKNOWN if not self._state.slices_read else None)

    async def run(self, client: ApiClient, pace: Pace) -> None:
        """Follow until `life` is cancelled."""
        with self.life:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._do_without_slices)
                nursery.start_soon(self._follow_slices, client, pace)
                await self._follow_service(client, pace)

    async def _follow_service(self, client: ApiClient, pace: Pace) -> None:
        await follow(
            client,
            service_collection(self.key),
            on_change=self._take_service,
            on_synced=self._note_service,
            status=self._service,
            expected=self._expected,
            pace=pace,
        )

    async def _follow_slices(self, client: ApiClient, pace: Pace) -> None:
        await follow(
            client,
            slice_collection(self.key),
            on_change=self._take_slices,
            on_synced=self._note_slices,
            status=self._slices,
            expected=self._expected,
            pace=pace,
        )

    async def _do_without_slices(self) -> None:
        await self._service_read.wait()
        await trio.sleep(PATIENCE)
        if not self._slices.synced:
            self._go_without_slices()
            self._on_synced()

    def _go_without_slices(self) -> None:
        self._without_slices = True
        cause = str(self._slices.error or "no answer yet")
        structlog.get_logger("dnsproxy.targets").warning(_UNKNOWN, service=self.key, cause=cause)
        self._report()

    def _take_service(self, changes: Mapping[str, Service | Unreadable | None]) -> None:
        if self.key in changes:
            self._state.service = changes[self.key]
            self._report()

    def _note_service(self) -> None:
        self._service_read.set()
        self._report()
        self._on_synced()

    def _take_slices(self, changes: Mapping[str, EndpointSlice | Unreadable | None]) -> None:
        self._state.take_slices(changes)
        self._report()

    def _note_slices(self) -> None:
        # A list without a single page is one that RBAC hides (Collection.optional).
        if self._slices.pages:
            self._state.slices_read = True
            self._report()
        elif not self._without_slices:
            self._go_without_slices()
        self._on_synced()

    def _report(self) -> None:
        if self.is_known and not self.life.cancel_called:
            self._on_report(self)
