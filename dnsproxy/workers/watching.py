"""What listeners of the parent see of a worker's queries.

The law: a worker notes only what a listener of the parent may want, and drops what the parent has no time for, as a
Subscription does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap.hub import Tap
from dnsproxy.workers.messages import Watched


class Watching:
    """Passes on the queries of one worker while somebody listens; `send` waits until the parent has room."""

    def __init__(self, tap: Tap, send: Callable[[Watched], Awaitable[None]], nursery: trio.Nursery) -> None:
        self._tap = tap
        self._send = send
        self._nursery = nursery
        self._scope = trio.CancelScope()

    def watch(self, wanted: TapFilter | None) -> None:
        """Pass on what this filter wants from now on; None: nothing."""
        self._scope.cancel()
        if wanted is not None:
            self._scope = trio.CancelScope()
            self._nursery.start_soon(self._pass_on, wanted, self._scope)

    async def _pass_on(self, wanted: TapFilter, scope: trio.CancelScope) -> None:
        with scope, self._tap.subscribe(wanted) as subscription:
            while True:
                seen = await subscription.receive(lambda seen: seen)
                await self._send(Watched(seen, subscription.take_dropped()))
