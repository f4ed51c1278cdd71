"""One collection in several namespaces: rights in these namespaces are enough to follow it.

The law: a list and a watch for each namespace; from outside it looks like one follower, with one status. A namespace
that does not exist, fails or is forbidden does not affect the others, but the collection is not synced without it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

import trio

from sidecar.kubernetes.follower_status import FollowerStatus, join_statuses
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, Resource
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace

T = TypeVar("T", bound=Resource)


async def follow_in(
    client: ApiClient,
    collection: Collection[T],
    namespaces: Sequence[str],
    *,
    on_change: Callable[[Changes[T]], None],
    on_synced: Callable[[], None] = lambda: None,
    status: FollowerStatus | None = None,
    expected: int = 0,
    pace: Pace = DEFAULT_PACE,
    draw: Callable[[], float] = random.random,
) -> NoReturn:
    """Follow the objects of these namespaces as listwatch.follow does; empty: those of all namespaces, by one request.

    `on_synced` is called after each whole list of a namespace, once all of them are synced.
    """
    status = status or FollowerStatus()
    if not namespaces:
        await follow(
            client,
            collection,
            on_change=on_change,
            on_synced=on_synced,
            status=status,
            expected=expected,
            pace=pace,
            draw=draw,
        )
    parts = {name: FollowerStatus() for name in namespaces}
    status.kind = collection.kind
    joiner = _Joiner(lambda: join_statuses(status, parts))

    def report_list() -> None:
        join_statuses(status, parts)
        if status.synced:
            on_synced()

    async def follow_one(name: str) -> None:
        await follow(
            client,
            in_namespace(collection, name),
            on_change=on_change,
            on_synced=report_list,
            on_status=joiner.wake,
            status=parts[name],
            # How many there were in each is not known. With an even share, none of the empty lists that an API server
            # sends while it starts is believed at once.
            expected=-(-expected // len(parts)),
            pace=pace,
            draw=draw,
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(joiner.run)
        for name in parts:
            nursery.start_soon(follow_one, name)
    raise AssertionError("a follower runs until it is cancelled")


def in_namespace(collection: Collection[T], namespace: str) -> Collection[T]:
    """The part of a collection of all namespaces that is in one."""
    above, _, plural = collection.path.rpartition("/")
    path = f"{above}/namespaces/{namespace}/{plural}"
    return replace(collection, kind=f"{collection.kind} in {namespace}", path=path)


class _Joiner:
    """Joins the statuses soon after one of them changed, once for all changes of a moment: there may be many."""

    def __init__(self, join: Callable[[], None]) -> None:
        self._join = join
        self._changed = trio.Event()

    def wake(self) -> None:
        self._changed.set()

    async def run(self) -> NoReturn:
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            self._join()
