"""Lists and watches everything that the present plan depends on.

The law: a thin shell; objects that are no longer read are no longer followed. A follower retries by itself when RBAC
does not allow it or the API server is away; the regular looks work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from dnsproxy.cluster_dns.requests import Request
from dnsproxy.install.watch.followed import Differences, Watched, collection_of, followed
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow


class Followers:
    """Calls `on_change` after each change that matters; its tasks live in the nursery."""

    def __init__(self, client: ApiClient, nursery: trio.Nursery, on_change: Callable[[], None]) -> None:
        self._client = client
        self._nursery = nursery
        self._on_change = on_change
        self._scopes: dict[Request, trio.CancelScope] = {}

    def want(self, asked: Iterable[Request]) -> None:
        """Follow the objects of these requests, and nothing else."""
        wanted = followed(asked)
        for request in [one for one in self._scopes if one not in wanted]:
            self._scopes.pop(request).cancel()
        for request in wanted:
            if request not in self._scopes:
                scope = self._scopes[request] = trio.CancelScope()
                self._nursery.start_soon(self._follow, request, scope)

    async def _follow(self, request: Request, scope: trio.CancelScope) -> None:
        differences = Differences()

        def take(changes: Changes[Watched]) -> None:
            if differences.take(changes):
                self._on_change()

        with scope:
            # The first list reports all objects as new, so changes since the look are noticed.
            await follow(self._client, collection_of(request), on_change=take)
