"""Follows the Services that targets name, each with its EndpointSlices, and reports their addresses.

The law: a thin shell over followed_target.py. The last known addresses of a Service count through every outage. If a
Service is gone, headless, or without an address or a ready endpoint, that is logged once, and the names that point to
it are forwarded. Any user who may create an object may name a Service, so their number is bounded, and unused ones are
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import structlog
import trio

from dnsproxy.sources.followed_target import FollowedTarget
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

Addresses = Mapping[str, tuple[str, ...]]
"""By `NAMESPACE/NAME`."""

MOST: Final = 100
"""Services followed because objects name them; each costs the API server two watches."""

PATIENCE: Final = 5.0
"""Seconds that the first sync waits for a Service that only an object names: RBAC may hide it."""

_NONE: Final[Addresses] = MappingProxyType({})


class ServiceTargets:
    """The addresses of the Services that are wanted; run() must be running.

    `configured` Services are always followed; `known` are addresses from an earlier run, which count until the Service
    and its EndpointSlices were read. `on_change` gets the Service whose addresses changed, and the addresses of all.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        configured: Iterable[str] = (),
        known: Addresses = _NONE,
        on_change: Callable[[str, Addresses], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
        most: int = MOST,
    ) -> None:
        self._client = client
        self._known = dict(known)
        self._on_change = on_change
        self._on_synced = on_synced
        self._pace = pace
        self._most = most
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._unready: dict[str, None] = {}
        self._faults: dict[str, str] = {}
        self._followed: dict[str, FollowedTarget] = {}
        self._configured: dict[str, FollowedTarget] = {}
        self._waiting: dict[str, None] = {}
        self._wanted: dict[str, None] = {}
        """Services that objects name."""
        self._steered: frozenset[str] = frozenset()
        self._nursery: trio.Nursery | None = None
        self._log = structlog.get_logger("dnsproxy.targets")
        for key in configured:
            self._start(key)
        self._configured |= self._followed

    @property
    def addresses(self) -> Addresses:
        """The addresses of the followed Services, also of unready ones; equal to before if nothing changed."""
        return {key: found for key, found in self._addresses.items() if found}

    @property
    def unready(self) -> frozenset[str]:
        """The followed Services without a ready endpoint."""
        return frozenset(self._unready)

    @property
    def statuses(self) -> list[FollowerStatus]:
        """How the watches are doing."""
        return [status for one in self._followed.values() for status in one.statuses]

    @property
    def faults(self) -> Mapping[str, str]:
        """Why a wanted Service has no address, or what is not known about it."""
        first = next(iter(self._waiting), None)
        if first is None:
            return self._faults
        more = f", nor are {len(self._waiting) - 1} others" if len(self._waiting) > 1 else ""
        return self._faults | {first: f"it is not followed{more}: objects name more than {self._most} Services"}

    @property
    def synced(self) -> bool:
        """Whether every wanted Service was read, or was waited for long enough."""
        return all(one.is_known or one.is_given_up for one in self._followed.values())

    @property
    def consistent(self) -> bool:
        """Whether the configured Services were read, and none is unconfirmed."""
        return all(one.is_known and not one.is_doubted for one in self._configured.values())

    def want(self, keys: Iterable[str]) -> None:
        """Follow these Services, which an object names now."""
        for key in keys:
            self._wanted[key] = None
            if key in self._followed:
                continue
            if len(self._followed) - len(self._configured) < self._most:
                self._start(key)
            else:
                self._wait(key)

    def steer(self, keys: Iterable[str]) -> None:
        """Follow these Services as configured ones, and no longer those of the last call that are not among them."""
        wanted = frozenset(keys)
        new = wanted - self._configured.keys()
        for key in self._steered - wanted:
            del self._configured[key]
            if key not in self._wanted:
                self._stop(key)
        for key in new:
            self._waiting.pop(key, None)
            if key not in self._followed:
                self._start(key)
            self._configured[key] = self._followed[key]
        self._steered = (self._steered & wanted) | new

    def leave(self, keys: Iterable[str]) -> None:
        """Stop following these Services, which no object names any more."""
        for key in keys:
            self._waiting.pop(key, None)
            self._wanted.pop(key, None)
            if key in self._followed and key not in self._configured:
                self._stop(key)
        while self._waiting and len(self._followed) - len(self._configured) < self._most:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self._start(first)

    async def run(self) -> None:
        """Follow the wanted Services until cancelled."""
        async with trio.open_nursery() as nursery:
            # Kept so that a Service that an object names later can be followed; all end with run().
            self._nursery = nursery
            for one in self._followed.values():
                nursery.start_soon(self._follow, one)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def _start(self, key: str) -> None:
        if key in self._known:
            self._addresses[key] = self._known.pop(key)
        expected = 1 if self._addresses.get(key) else 0
        one = FollowedTarget(key, on_report=self._take, on_synced=self._on_synced, expected=expected)
        self._followed[key] = one
        if self._nursery is not None:
            self._nursery.start_soon(self._follow, one)

    def _wait(self, key: str) -> None:
        if not self._waiting:
            self._log.warning(
                "objects name too many Services; names that point to the others are forwarded", most=self._most
            )
        self._waiting[key] = None

    def _stop(self, key: str) -> None:
        self._followed.pop(key).life.cancel()
        self._faults.pop(key, None)
        self._set(key, (), unready=False)
        self._addresses.pop(key, None)

    async def _follow(self, one: FollowedTarget) -> None:
        async with trio.open_nursery() as nursery:
            if one.key not in self._configured:
                nursery.start_soon(self._lose_patience, one)
            await one.run(self._client, self._pace)
            nursery.cancel_scope.cancel()

    async def _lose_patience(self, one: FollowedTarget) -> None:
        await trio.sleep(PATIENCE)
        one.is_given_up = True
        self._on_synced()

    def _take(self, one: FollowedTarget) -> None:
        self._note_fault(one)
        self._set(one.key, one.addresses, unready=one.unready)

    def _set(self, key: str, found: tuple[str, ...], *, unready: bool) -> None:
        if found == self._addresses.get(key, ()) and unready == (key in self._unready):
            return
        self._addresses[key] = found
        if unready:
            self._unready[key] = None
        else:
            self._unready.pop(key, None)
        if found and not unready:
            self._log.info("target has addresses", service=key, addresses=list(found))
        self._on_change(key, self.addresses)

    def _note_fault(self, one: FollowedTarget) -> None:
        """Keep why a Service has no address; the log has one line for each transition."""
        before = self._faults.pop(one.key, None)
        if one.fault is None:
            return
        self._faults[one.key] = one.fault
        if one.unready:
            if one.key not in self._unready:
                event = "no endpoint of the target is ready; its names are forwarded"
                self._log.warning(event, service=one.key, cause=one.fault)
        elif not one.addresses and one.fault != before:
            self._log.warning(
                "target has no address; names that point there are forwarded", service=one.key, cause=one.fault
            )
