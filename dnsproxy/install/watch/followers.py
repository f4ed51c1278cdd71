"""Followers: list and watch of everything that a plan rests on, as many of them as that takes at the time.

The law: a thin shell; what is no longer read is no longer followed. One that RBAC does not allow, or whose API server
is away, tries again by itself, and a look now and then does without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from dnsproxy.cluster_dns.requests import Request
from dnsproxy.install.watch.followed import Differences, Watched, collection_of, followed
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow


class Followers:
    """Calls `on_change` after each change that matters; what it starts lives in the nursery."""

    def __init__(self, client: ApiClient, nursery: trio.Nursery, on_change: Callable[[], None]) -> None:
        self._client = client
        self._nursery = nursery
        self._on_change = on_change
        self._scopes: dict[Request, trio.CancelScope] = {}

    def want(self, asked: Iterable[Request]) -> None:
        """Follow what these requests read, and nothing else."""
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
            # What changed between the look that asked for this and the first list comes as new, and so is told.
            await follow(self._client, collection_of(request), on_change=take)
