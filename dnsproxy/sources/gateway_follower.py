"""Follows the Gateway API: its kinds, in the versions that the API server currently serves.

The law: a thin shell over gateway/source.py and gateway/versions.py. CRDs may appear, change version and disappear at
any time. A kind that is not served is off and does not affect the others; if discovery fails, nothing changes. Only
discovery decides which kinds exist, so that the end of one version removes no name while the next version is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources.gateway.kinds import SOURCES
from dnsproxy.sources.gateway.source import GatewaySource
from dnsproxy.sources.gateway.versions import (
    GROUP_VERSIONS,
    NAMESPACES,
    GatewayCollection,
    choose_collections,
    parse_resources,
)
from dnsproxy.sources.settings import GatewayOptions
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace, backoff
from sidecar.loop.slices import in_slices

DISCOVER_EVERY: Final = 10.0
"""Seconds between two discoveries of the served kinds; watches report everything else."""
_ANSWER: Final = 10.0  # seconds for one answer


class _Kind:
    """One kind in one version: how it is followed, and which of its objects are known."""

    def __init__(self, collection: GatewayCollection, *, before: dict[str, None]) -> None:
        self.collection = collection
        self.status = FollowerStatus(collection.kind)
        self.life = trio.CancelScope()
        self.is_served = True
        self.is_missed = False
        """The last discovery did not find it; the next one decides."""
        self.known: dict[str, None] = {}
        self.before = before
        """Objects known from another version and not yet seen in this one."""


class GatewayFollower:
    """Keeps the claims of Gateways, ListenerSets and routes in a store; run() must be running."""

    def __init__(
        self,
        client: ApiClient,
        store: ClaimSink,
        *,
        options: GatewayOptions,
        on_claims: Callable[[frozenset[str]], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
        discover_every: float = DISCOVER_EVERY,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._store = store
        self._source = GatewaySource(store, options=options)
        self._on_claims = on_claims
        self._on_synced = on_synced
        self._pace = pace
        self._discover_every = discover_every
        self._draw = draw
        self._kinds: dict[str, _Kind] = {}
        self._namespaces = FollowerStatus(NAMESPACES.kind)
        self._discovered = False
        self._read_once = False
        self._unreported_list = False
        self._logged: str | None = None
        self._changed = trio.Event()
        self._log = structlog.get_logger("dnsproxy.gateway")

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of the watches of the served kinds."""
        return [*(kind.status for kind in self._kinds.values() if kind.is_served), self._namespaces]

    @property
    def consistent(self) -> bool:
        """Whether the claims match the cluster: everything was read, and nothing is unconfirmed."""
        return self._read_once and self._all_read and not any(status.doubted for status in self.statuses)

    @property
    def _all_read(self) -> bool:
        return self._discovered and all(status.synced for status in self.statuses)

    async def report(self, kind: str, key: str) -> frozenset[str]:
        """Put the claims of one object into the store once more. Returns the hostnames whose claims changed."""
        return self._source.report(kind, key)

    async def run(self) -> None:
        """Follow until cancelled."""
        failures = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle)
            nursery.start_soon(self._follow_namespaces)
            while True:
                try:
                    chosen = await self._discover()
                except ApiError as error:
                    self._report(error)
                    wait = backoff(failures, pace=self._pace, random=self._draw())
                    failures += 1
                else:
                    failures, self._logged = 0, None
                    wait = self._pace.confirm if self._adopt(chosen, nursery) else self._discover_every
                await trio.sleep(wait)

    def _report(self, error: ApiError) -> None:
        """Log once for each cause, not for each attempt."""
        if self._logged != error.cause:
            self._logged = error.cause
            self._log.warning("cannot discover the kinds of the Gateway API", cause=error.cause, error=str(error))

    async def _discover(self) -> Mapping[str, GatewayCollection]:
        """The collection to follow for each served kind. Raises ApiError."""
        served: dict[str, frozenset[str]] = {}
        for group_version in GROUP_VERSIONS:
            try:
                body = await self._client.get(f"/apis/{group_version}", seconds=_ANSWER)
            except NotFound:
                continue
            served[group_version] = parse_resources(body)
        return choose_collections(served)

    def _adopt(self, chosen: Mapping[str, GatewayCollection], nursery: trio.Nursery) -> bool:
        """Follow the served kinds. Returns whether a kind seems gone, which another discovery must confirm."""
        before = self._paths()
        for name, collection in chosen.items():
            kind = self._kinds.get(name)
            if kind is None or not kind.is_served or kind.collection.path != collection.path:
                self._start(collection, nursery)
            self._kinds[name].is_missed = False
        missed = [kind for name, kind in self._kinds.items() if kind.is_served and name not in chosen]
        for kind in missed:
            if kind.is_missed:
                self._stop(kind)
            kind.is_missed = True
        if not self._discovered or self._paths() != before:
            self._log.info("kinds of the Gateway API", kinds=self._paths())
        self._discovered = True
        self._check_read()
        return any(kind.is_served for kind in missed)

    def _paths(self) -> dict[str, str]:
        return {name: kind.collection.path for name, kind in self._kinds.items() if kind.is_served}

    def _start(self, collection: GatewayCollection, nursery: trio.Nursery) -> None:
        old = self._kinds.get(collection.kind)
        if old is not None:
            old.life.cancel()
        before = {} if old is None else {**old.before, **old.known}
        kind = self._kinds[collection.kind] = _Kind(collection, before=before)
        nursery.start_soon(self._follow, kind)

    def _stop(self, kind: _Kind) -> None:
        kind.life.cancel()
        kind.is_served = False
        kind.before |= kind.known
        kind.known = {}
        self._changed.set()

    async def _follow(self, kind: _Kind) -> None:
        with kind.life:
            await follow(  # type: ignore[misc]  # a union of collections, each of one type
                self._client,
                kind.collection,
                on_change=partial(self._take, kind),
                on_synced=self._note_list,
                status=kind.status,
                expected=len(kind.before) or self._store.restored(kind.collection.kind),
                pace=self._pace,
                draw=self._draw,
            )

    async def _follow_namespaces(self) -> None:
        await follow(
            self._client,
            NAMESPACES,
            on_change=self._take_namespaces,
            on_synced=self._note_list,
            status=self._namespaces,
            pace=self._pace,
            draw=self._draw,
        )

    def _take(self, kind: _Kind, changes: Mapping[str, Any]) -> None:
        if kind.life.cancel_called:
            # The last report of a stopped watch: another version reports by now.
            return
        for key, one in changes.items():
            kind.before.pop(key, None)
            if one is None:
                kind.known.pop(key, None)
            else:
                kind.known[key] = None
        self._source.change(kind.collection.kind, changes)
        self._changed.set()

    def _take_namespaces(self, changes: Mapping[str, Any]) -> None:
        self._source.change_namespaces(changes)
        self._changed.set()

    def _note_list(self) -> None:
        self._unreported_list = True
        self._check_read()

    def _check_read(self) -> None:
        if self._all_read:
            self._changed.set()

    async def _settle(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self._read_once = self._read_once or self._all_read
            if not self._read_once:
                # A route without its Gateway would claim nothing, and would replace its claims from a snapshot.
                continue
            await in_slices(self._forget_gone())
            await in_slices(self._settle_each())
            if self._all_read and self._source.is_settled:
                await in_slices(self._forget_restored())
                self._report_synced()

    def _forget_gone(self) -> Generator[None, None, None]:
        """Remove objects that another version had and this one has not, and all objects of a kind that is gone."""
        for name, kind in list(self._kinds.items()):
            while kind.before and self._kinds[name] is kind and (kind.status.synced or not kind.is_served):
                key, _ = kind.before.popitem()
                self._source.change(name, {key: None})
                yield

    def _settle_each(self) -> Generator[None, None, None]:
        while not self._source.is_settled:
            self._report_claims(self._source.settle(1))
            yield

    def _forget_restored(self) -> Generator[None, None, None]:
        """Remove the claims that a snapshot had and the cluster, now that all is read, has not."""
        for kind in SOURCES:
            for hostnames in self._store.forget_restored(kind):
                self._report_claims(hostnames)
                yield

    def _report_claims(self, hostnames: frozenset[str]) -> None:
        if hostnames:
            self._on_claims(hostnames)

    def _report_synced(self) -> None:
        if self._unreported_list:
            self._unreported_list = False
            self._on_synced()
