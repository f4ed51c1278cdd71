"""Ranked ConfigMaps: of several, in the order given, the first that is there decides, and is followed.

The law: one that comes after it is not even read; it is followed from the moment in which the ones before it are known
to be missing, until one of them appears. One that RBAC hides counts as missing, and is named. Before it is known that
the ones before are missing, none decides: a restart must not ask other upstreams for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

import structlog
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.upstream_config import config_map_collection
from sidecar.kubernetes.errors import Forbidden
from sidecar.kubernetes.follower_status import FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

PATIENCE: Final = 5.0
"""Seconds between two looks whether RBAC hides a ConfigMap: the rights of a new installation come a little later."""

Hidden = Mapping[ObjectRef, str]
"""The ConfigMaps that RBAC hides, with the API server's words."""


class State(Enum):
    """What is known of one ConfigMap."""

    UNREAD = "unread"
    THERE = "there"
    ABSENT = "absent"
    HIDDEN = "hidden"


class _Rank:
    def __init__(self, ref: ObjectRef) -> None:
        self.ref = ref
        self.status = FollowerStatus(f"ConfigMap {ref}")
        self.state = State.UNREAD
        self.cause = ""
        self._changed = trio.Event()

    @property
    def is_missing(self) -> bool:
        return self.state in {State.ABSENT, State.HIDDEN}

    def become(self, state: State, cause: str = "") -> None:
        self.state, self.cause = state, cause
        self._changed.set()
        self._changed = trio.Event()

    def forget(self) -> None:
        """Not followed any more: what was known of it may become wrong at any time."""
        self.status = FollowerStatus(f"ConfigMap {self.ref}")
        self.become(State.UNREAD)

    async def wait_missing(self) -> None:
        while not self.is_missing:
            await self._changed.wait()

    async def wait_there(self) -> None:
        while self.state is not State.THERE:
            await self._changed.wait()


class RankedConfigMaps:
    """`on_found` gets the one that decides, again after each change; `on_missing`: none is there.

    `on_synced` is called when either is known.
    """

    def __init__(
        self,
        refs: Sequence[ObjectRef],
        *,
        on_found: Callable[[ObjectRef, ConfigMap | Unreadable], None],
        on_missing: Callable[[Hidden], None],
        on_synced: Callable[[], None] = lambda: None,
    ) -> None:
        self._ranks = [_Rank(ref) for ref in dict.fromkeys(refs)]
        self._on_found = on_found
        self._on_missing = on_missing
        self._on_synced = on_synced
        self._named: set[ObjectRef] = set()
        self._log = structlog.get_logger("dnsproxy.upstreams")

    @property
    def refs(self) -> tuple[ObjectRef, ...]:
        """In their order, each once."""
        return tuple(rank.ref for rank in self._ranks)

    @property
    def statuses(self) -> list[FollowerStatus]:
        """Those of the ones that are followed."""
        return [rank.status for number, rank in enumerate(self._ranks) if self._is_wanted(number)]

    @property
    def decides(self) -> ObjectRef | None:
        """The one that decides at present."""
        there = (rank for number, rank in enumerate(self._ranks) if self._is_wanted(number))
        return next((rank.ref for rank in there if rank.state is State.THERE), None)

    @property
    def hidden(self) -> Hidden:
        """Those among the followed ones that RBAC hides."""
        return {rank.ref: rank.cause for rank in self._ranks if rank.state is State.HIDDEN}

    async def run(
        self,
        client: ApiClient,
        *,
        expected: ObjectRef | None = None,
        pace: Pace = DEFAULT_PACE,
        patience: float = PATIENCE,
    ) -> None:
        """Follow until cancelled; `expected` was there in an earlier run."""

        async def follow_from(number: int) -> None:
            rank = self._ranks[number]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._wait_allowed, number, patience)
                nursery.start_soon(follow_one, rank, number)
                while number + 1 < len(self._ranks):
                    await rank.wait_missing()
                    async with trio.open_nursery() as others:
                        others.start_soon(follow_from, number + 1)
                        await rank.wait_there()
                        others.cancel_scope.cancel()
                    for one in self._ranks[number + 1 :]:
                        one.forget()

        async def follow_one(rank: _Rank, number: int) -> None:
            await follow(
                client,
                config_map_collection(rank.ref),
                on_change=lambda changes: self._take(number, changes),
                on_synced=lambda: self._note_listed(number),
                status=rank.status,
                expected=int(rank.ref == expected),
                pace=pace,
            )

        await follow_from(0)

    def _is_wanted(self, number: int) -> bool:
        """Whether all before it are missing."""
        return all(rank.is_missing for rank in self._ranks[:number])

    async def _wait_allowed(self, number: int, patience: float) -> None:
        """Take one that RBAC hides for missing: queries would wait for ever."""
        rank = self._ranks[number]
        while not rank.status.synced:
            await trio.sleep(patience)
            if not rank.status.synced and isinstance(rank.status.error, Forbidden):
                rank.become(State.HIDDEN, str(rank.status.error))
                self._name(rank)
                self._settle(number)

    def _take(self, number: int, changes: Mapping[str, ConfigMap | Unreadable | None]) -> None:
        rank = self._ranks[number]
        if str(rank.ref) not in changes:
            return
        found = changes[str(rank.ref)]
        rank.become(State.ABSENT if found is None else State.THERE)
        if found is None:
            self._settle(number)
        elif self._is_wanted(number):
            self._on_found(rank.ref, found)

    def _note_listed(self, number: int) -> None:
        rank = self._ranks[number]
        if rank.state is not State.THERE:
            rank.become(State.ABSENT)
        self._settle(number)

    def _settle(self, number: int) -> None:
        """Report that none is there, or that one is."""
        if not self._is_wanted(number):
            return
        if self._ranks[number].state is State.THERE:
            self._on_synced()
        elif number + 1 == len(self._ranks):
            self._on_missing(self.hidden)
            self._on_synced()

    def _name(self, rank: _Rank) -> None:
        if len(self._ranks) > 1 and rank.ref not in self._named:
            self._named.add(rank.ref)
            self._log.warning("a ConfigMap that cannot be read is skipped", config_map=str(rank.ref), cause=rank.cause)
