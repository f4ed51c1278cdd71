"""Follows the Gateway API: whichever of its kinds, in whichever versions, the API server has at the moment.

The law: a thin shell over source.py and versions.py. CRDs may come, change version and go at any time; a kind that is
not there is off, the others unmoved, and what the server could not be asked about stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from dnsproxy.sources.gateway.kinds import SOURCES
from dnsproxy.sources.gateway.source import GatewayOptions, GatewaySource
from dnsproxy.sources.gateway.versions import (
    GROUP_VERSIONS,
    NAMESPACES,
    GatewayCollection,
    choose_collections,
    parse_resources,
)
from dnsproxy.sources.store import ClaimStore
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.status import Status
from sidecar.kubernetes.steps import DEFAULT_PACE, Pace
from sidecar.slices import in_slices

DISCOVER_EVERY: Final = 30.0
"""Seconds between two looks at which kinds there are; a watch tells of all else."""
_ANSWER: Final = 10.0  # seconds for one answer
_RETRY: Final = 2.0  # seconds until the server is asked again after it could not be


class _Kind:
    """One kind that is followed: how, and which objects of it are known."""

    def __init__(self, collection: GatewayCollection) -> None:
        self.collection = collection
        self.status = Status(collection.kind)
        self.life = trio.CancelScope()
        self.known: dict[str, None] = {}
        self.before: dict[str, None] = {}
        """What was known through another version, and not seen through this one yet."""


class GatewayFollower:
    """Keeps the claims of Gateways, ListenerSets and routes in a store; run() must be running."""

    def __init__(
        self,
        client: ApiClient,
        store: ClaimStore,
        *,
        options: GatewayOptions,
        on_claims: Callable[[frozenset[str]], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
        discover_every: float = DISCOVER_EVERY,
    ) -> None:
        self._client = client
        self._store = store
        self._source = GatewaySource(store, options=options)
        self._on_claims = on_claims
        self._on_synced = on_synced
        self._pace = pace
        self._discover_every = discover_every
        self._kinds: dict[str, _Kind] = {}
        self._namespaces = Status(NAMESPACES.kind)
        self._discovered = False
        self._read_once = False
        self._changed = trio.Event()
        self._log = structlog.get_logger("dnsproxy.gateway")

    @property
    def statuses(self) -> list[Status]:
        """How the watches are doing."""
        return [*(kind.status for kind in self._kinds.values()), self._namespaces]

    @property
    def synced(self) -> bool:
        """Whether the claims are the cluster's."""
        return self._read_once and self._all_read and self._source.is_settled

    @property
    def _all_read(self) -> bool:
        return self._discovered and all(status.synced for status in self.statuses)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle)
            nursery.start_soon(self._follow_namespaces)
            while True:
                chosen = await self._discover()
                if chosen is not None:
                    self._adopt(chosen, nursery)
                await trio.sleep(_RETRY if chosen is None else self._discover_every)

    async def _discover(self) -> Mapping[str, GatewayCollection] | None:
        """What to follow of each kind; None where the server could not be asked."""
        served: dict[str, frozenset[str]] = {}
        for group_version in GROUP_VERSIONS:
            try:
                body = await self._client.get(f"/apis/{group_version}", seconds=_ANSWER)
                served[group_version] = parse_resources(body)
            except NotFound:
                continue
            except ApiError as error:
                if not self._discovered:
                    self._log.warning("cannot ask for the kinds of the Gateway API", error=str(error))
                return None
        return choose_collections(served)

    def _adopt(self, chosen: Mapping[str, GatewayCollection], nursery: trio.Nursery) -> None:
        for name, kind in list(self._kinds.items()):
            # One that is gone is left to its watch, which sees it go and, perhaps, come again.
            if name in chosen and chosen[name].path != kind.collection.path:
                kind.life.cancel()
                self._start(chosen[name], nursery, before=kind.known)
        for name, collection in chosen.items():
            if name not in self._kinds:
                self._start(collection, nursery, before={})
        first, self._discovered = not self._discovered, True
        if first:
            self._log.info("kinds of the Gateway API", kinds=sorted(chosen))
            self._tell_synced()

    def _start(self, collection: GatewayCollection, nursery: trio.Nursery, *, before: dict[str, None]) -> None:
        kind = self._kinds[collection.kind] = _Kind(collection)
        kind.before = before
        nursery.start_soon(self._follow, kind)

    async def _follow(self, kind: _Kind) -> None:
        with kind.life:
            await follow(  # type: ignore[misc]  # a union of collections, each of one type
                self._client,
                kind.collection,
                on_change=partial(self._take, kind),
                on_synced=partial(self._note_synced, kind),
                status=kind.status,
                expected=len(kind.before) or self._store.restored(kind.collection.kind),
                pace=self._pace,
            )

    async def _follow_namespaces(self) -> None:
        await follow(
            self._client,
            NAMESPACES,
            on_change=self._take_namespaces,
            on_synced=self._tell_synced,
            status=self._namespaces,
            pace=self._pace,
        )

    def _take(self, kind: _Kind, changes: Mapping[str, Any]) -> None:
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

    def _note_synced(self, kind: _Kind) -> None:
        if kind.before:
            gone, kind.before = kind.before, {}
            self._source.change(kind.collection.kind, dict.fromkeys(gone))
            self._changed.set()
        self._tell_synced()

    async def _settle(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self._read_once = self._read_once or self._all_read
            if not self._read_once:
                # A route without its Gateway would claim nothing, and take out what a snapshot remembers of it.
                continue
            await in_slices(self._settle_each())
            if self.synced:
                await in_slices(self._forget_restored())
            self._tell_synced()

    def _settle_each(self) -> Generator[None, None, None]:
        while not self._source.is_settled:
            self._tell_claims(self._source.settle(1))
            yield

    def _forget_restored(self) -> Generator[None, None, None]:
        """What a snapshot had and the cluster, now that all is read, has not."""
        for kind in SOURCES:
            for hostnames in self._store.forget_restored(kind):
                self._tell_claims(hostnames)
                yield

    def _tell_claims(self, hostnames: frozenset[str]) -> None:
        if hostnames:
            self._on_claims(hostnames)

    def _tell_synced(self) -> None:
        if self.synced:
            self._on_synced()
        elif self._all_read:
            self._changed.set()
