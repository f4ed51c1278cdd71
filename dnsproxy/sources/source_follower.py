"""Follows the kinds of one source, in the versions that the API server currently serves.

The law: a thin shell over an ObjectSource, discovery.py and watched_kinds.py. CRDs may appear, change version and
disappear at any time. A kind that is not served is off and does not affect the others. If discovery fails, nothing
changes; while the API server answers, a group that fails keeps the first sync waiting for PATIENCE at most. Only
discovery decides which kinds exist, so that the end of one version removes no name while the next version is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
import trio

from dnsproxy.hostnames.claim_sink import ClaimSink
from dnsproxy.sources.discovery import ANSWER, discover
from dnsproxy.sources.followed_kind import PATIENCE, FollowedKind
from dnsproxy.sources.followed_kinds import FollowedKinds
from dnsproxy.sources.object_source import ObjectSource
from dnsproxy.sources.selection import ALL, Selection
from dnsproxy.sources.watched_kinds import WatchedKind
from sidecar.kubernetes.errors import ApiError, ServerTrouble
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.namespaces import follow_in
from sidecar.kubernetes.objects import Collection
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace, backoff
from sidecar.loop.slices import in_slices

DISCOVER_EVERY: Final = 10.0
"""Seconds between two discoveries of the served kinds; watches report everything else."""


class SourceFollower:
    """Keeps the claims of one source in a store; run() must be running."""

    def __init__(
        self,
        client: ApiClient,
        store: ClaimSink,
        source: ObjectSource,
        *,
        name: str,
        kinds: Sequence[WatchedKind],
        beside: Sequence[Collection[Any]] = (),
        selection: Selection = ALL,
        on_claims: Callable[[frozenset[str]], None],
        on_synced: Callable[[], None] = lambda: None,
        pace: Pace = DEFAULT_PACE,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`name`: for logs; `beside`: collections that every API server has, whose changes the source takes, too.

        `selection`: which objects of `kinds` count; those of `beside` are in no namespace.
        """
        self._client = client
        self._store = store
        self._source = source
        self._wanted = tuple(kinds)
        self._selection = selection
        self._on_claims = on_claims
        self._on_synced = on_synced
        self._pace = pace
        self._draw = draw
        self._kinds = FollowedKinds(beside)
        self._discovered = False
        self._is_given_up = False
        """The first sync does not wait for a discovery any more."""
        self._read_once = False
        self._unreported_list = True
        """A whole list is not reported yet; at first also if there is none, because no kind is served."""
        self._logged: str | None = None
        self._changed = trio.Event()
        self._log = structlog.get_logger("dnsproxy.sources").bind(source=name)

    @property
    def statuses(self) -> list[FollowerStatus]:
        """The status of the watches of the served kinds."""
        return self._kinds.statuses

    @property
    def consistent(self) -> bool:
        """Whether the claims match the cluster: everything was read, and nothing is unconfirmed."""
        return self._read_once and self._discovered and all(one.synced and not one.doubted for one in self.statuses)

    @property
    def _all_read(self) -> bool:
        return (self._discovered or self._is_given_up) and self._kinds.are_read

    def collection(self, kind: str) -> Collection[Any] | None:
        """Where the objects of a kind are read at the moment; None if the API server does not have it."""
        return self._kinds.collection(kind)

    def wake(self) -> None:
        """Settle soon: something else than its objects has touched the source."""
        self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        failures, since = 0, trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle)
            for one in self._kinds.beside:
                nursery.start_soon(self._follow, one)
            while True:
                try:
                    # No object of a kind without namespaces is in the chosen ones, and there is no path to list it.
                    namespaced = bool(self._selection.namespaces)
                    chosen = await discover(self._client, self._wanted, namespaced=namespaced)
                except ApiError as error:
                    self._report(error)
                    if isinstance(error, ServerTrouble) and trio.current_time() - since >= PATIENCE:
                        await self._do_without_discovery(error)
                    wait = backoff(failures, pace=self._pace, random=self._draw())
                    failures += 1
                else:
                    failures, self._logged = 0, None
                    wait = self._pace.confirm if self._adopt(chosen, nursery.start_soon) else DISCOVER_EVERY
                    # Only now: the API server answers, so that the failure is that of the kind.
                    self._do_without(trio.current_time())
                await trio.sleep(wait)

    async def _do_without_discovery(self, error: ServerTrouble) -> None:
        """Wait no more, if only this group fails: another server behind the API server may be dead.

        https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
        """
        if self._discovered or self._is_given_up:
            return
        try:
            await self._client.get("/version", seconds=ANSWER)
        except ApiError:
            return
        self._is_given_up = True
        self._log.warning("not waiting for the kinds", error=str(error))
        self._check_read()

    def _report(self, error: ApiError) -> None:
        """Log once for each cause, not for each attempt."""
        if self._logged != error.cause:
            self._logged = error.cause
            self._log.warning("cannot discover kinds", cause=error.cause, error=str(error))

    def _adopt(self, chosen: Mapping[str, Collection[Any]], start: Callable[..., None]) -> bool:
        """Follow the served kinds. Returns whether a kind seems gone, which another discovery must confirm."""
        before = self._kinds.paths()
        adopted = self._kinds.adopt({name: self._select(collection) for name, collection in chosen.items()})
        for kind in adopted.begun:
            start(self._follow, kind, self._selection.namespaces)
        if adopted.any_ended:
            self._changed.set()
        if not self._discovered or self._kinds.paths() != before:
            self._log.info("kinds", kinds=self._kinds.paths())
        self._discovered = True
        self._check_read()
        return adopted.seems_any_gone

    def _select(self, collection: Collection[Any]) -> Collection[Any]:
        names_hosts = any(one.names_hosts for one in self._wanted if one.kind == collection.kind)
        return self._selection.of(collection) if names_hosts else collection

    def _do_without(self, now: float) -> None:
        for kind in self._kinds.give_up(now):
            self._log.warning("not waiting for a kind", kind=kind.collection.kind, error=str(kind.status.error))
        self._check_read()

    async def _follow(self, kind: FollowedKind, namespaces: Sequence[str] = ()) -> None:
        with kind.life:
            await follow_in(
                self._client,
                kind.collection,
                namespaces,
                on_change=partial(self._take, kind),
                on_synced=self._note_list,
                status=kind.status,
                expected=len(kind.before) or self._store.restored(kind.collection.kind),
                pace=self._pace,
                draw=self._draw,
            )

    def _take(self, kind: FollowedKind, changes: Mapping[str, Any]) -> None:
        if kind.life.cancel_called:
            # The last report of a stopped watch: another version reports by now.
            return
        for key, one in changes.items():
            kind.note(key, exists=one is not None)
        self._report_claims(self._source.change(kind.collection.kind, changes))
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
        for name, key in self._kinds.take_gone():
            self._report_claims(self._source.change(name, {key: None}))
            yield

    def _settle_each(self) -> Generator[None, None, None]:
        while not self._source.is_settled:
            self._report_claims(self._source.settle(1))
            yield

    def _forget_restored(self) -> Generator[None, None, None]:
        """Remove the claims that a snapshot had and the cluster, now that all is read, has not."""
        if not self._discovered:
            return
        given_up = self._kinds.unread()
        for kind in (one for one in self._wanted if one.kind not in given_up):
            for hostnames in self._store.forget_restored(kind.kind):
                self._report_claims(hostnames)
                yield

    def _report_claims(self, hostnames: frozenset[str]) -> None:
        if hostnames:
            self._on_claims(hostnames)

    def _report_synced(self) -> None:
        if self._unreported_list:
            self._unreported_list = False
            self._on_synced()
