"""Follows the Gateway API: whichever of its kinds, in whichever versions, the API server has at the moment.

The law: a thin shell over source.py and versions.py. CRDs may come, change version and go at any time; a kind that is
not there is off, the others unmoved, and what the server could not be asked about stays as it was. Which kinds there
are is discovery's to say, so that a version that ends takes no name with it while the next one is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from dnsproxy.hostnames.claim_store import ClaimStore
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
from sidecar.kubernetes.follower_status import Status
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace, backoff
from sidecar.slices import in_slices

DISCOVER_EVERY: Final = 10.0
"""Seconds between two looks at which kinds there are; a watch tells of all else."""
_ANSWER: Final = 10.0  # seconds for one answer


class _Kind:
    """One kind, from one version of it to the next: how it is followed, and which objects of it are known."""

    def __init__(self, collection: GatewayCollection, *, before: dict[str, None]) -> None:
        self.collection = collection
        self.status = Status(collection.kind)
        self.life = trio.CancelScope()
        self.is_there = True
        self.is_missed = False
        """The last look did not find it; the next one decides."""
        self.known: dict[str, None] = {}
        self.before = before
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
        self._namespaces = Status(NAMESPACES.kind)
        self._discovered = False
        self._read_once = False
        self._lists_to_tell = False
        self._reported: str | None = None
        self._changed = trio.Event()
        self._log = structlog.get_logger("dnsproxy.gateway")

    @property
    def statuses(self) -> list[Status]:
        """How the watches are doing, of the kinds that are there."""
        return [*(kind.status for kind in self._kinds.values() if kind.is_there), self._namespaces]

    @property
    def in_step(self) -> bool:
        """Whether the claims are the cluster's: all of it was read, and nothing is in doubt."""
        return self._read_once and self._all_read and not any(status.doubted for status in self.statuses)

    @property
    def _all_read(self) -> bool:
        return self._discovered and all(status.synced for status in self.statuses)

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
                    failures, self._reported = 0, None
                    wait = self._pace.confirm if self._adopt(chosen, nursery) else self._discover_every
                await trio.sleep(wait)

    def _report(self, error: ApiError) -> None:
        """Once for each kind of trouble, not for each try."""
        if self._reported != error.cause:
            self._reported = error.cause
            self._log.warning("cannot ask for the kinds of the Gateway API", cause=error.cause, error=str(error))

    async def _discover(self) -> Mapping[str, GatewayCollection]:
        """What to follow of each kind. Raises ApiError."""
        served: dict[str, frozenset[str]] = {}
        for group_version in GROUP_VERSIONS:
            try:
                body = await self._client.get(f"/apis/{group_version}", seconds=_ANSWER)
            except NotFound:
                continue
            served[group_version] = parse_resources(body)
        return choose_collections(served)

    def _adopt(self, chosen: Mapping[str, GatewayCollection], nursery: trio.Nursery) -> bool:
        """Follow what is there; whether a kind seems to be gone, which has to be confirmed by another look."""
        before = self._paths()
        for name, collection in chosen.items():
            kind = self._kinds.get(name)
            if kind is None or not kind.is_there or kind.collection.path != collection.path:
                self._start(collection, nursery)
            self._kinds[name].is_missed = False
        missed = [kind for name, kind in self._kinds.items() if kind.is_there and name not in chosen]
        for kind in missed:
            if kind.is_missed:
                self._stop(kind)
            kind.is_missed = True
        if not self._discovered or self._paths() != before:
            self._log.info("kinds of the Gateway API", kinds=self._paths())
        self._discovered = True
        self._look_whether_read()
        return any(kind.is_there for kind in missed)

    def _paths(self) -> dict[str, str]:
        return {name: kind.collection.path for name, kind in self._kinds.items() if kind.is_there}

    def _start(self, collection: GatewayCollection, nursery: trio.Nursery) -> None:
        old = self._kinds.get(collection.kind)
        if old is not None:
            old.life.cancel()
        before = {} if old is None else {**old.before, **old.known}
        kind = self._kinds[collection.kind] = _Kind(collection, before=before)
        nursery.start_soon(self._follow, kind)

    def _stop(self, kind: _Kind) -> None:
        kind.life.cancel()
        kind.is_there = False
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
            # Its last words: another version tells by now.
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
        self._lists_to_tell = True
        self._look_whether_read()

    def _look_whether_read(self) -> None:
        if self._all_read:
            self._changed.set()

    async def _settle(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self._read_once = self._read_once or self._all_read
            if not self._read_once:
                # A route without its Gateway would claim nothing, and take out what a snapshot remembers of it.
                continue
            await in_slices(self._forget_gone())
            await in_slices(self._settle_each())
            if self._all_read and self._source.is_settled:
                await in_slices(self._forget_restored())
                self._tell_synced()

    def _forget_gone(self) -> Generator[None, None, None]:
        """What a version did not show any more that another one had, and all of a kind that is not there any more."""
        for name, kind in list(self._kinds.items()):
            while kind.before and self._kinds[name] is kind and (kind.status.synced or not kind.is_there):
                key, _ = kind.before.popitem()
                self._source.change(name, {key: None})
                yield

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
        if self._lists_to_tell:
            self._lists_to_tell = False
            self._on_synced()
