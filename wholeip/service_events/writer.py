"""Sends the Events of one agent to the API server, in a task beside the reconciler.

The law: the reconciler never waits for an Event. At most one request in 2 seconds, so 30 in a minute, whatever the
cluster has; turns.py has the bound for all agents. An Event that exists counts as sent, whichever agent sent it. After
a failure of the API server all Events wait, ever longer; without the right to create Events, an hour. Each kind of
error is logged once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import Final, NoReturn

import structlog
import trio

from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, ServerTrouble, TooManyRequests, Unauthorized
from sidecar.kubernetes.events.event import GROUP, event_path, make_event, namespace_of
from sidecar.kubernetes.http import ApiClient
from wholeip.mappings.plan import Plan
from wholeip.service_events.schedule import Schedule
from wholeip.service_events.service_event import AGENT, ServiceEvent

PACE: Final = 2.0
"""Seconds between two requests."""
BACKOFF_FIRST: Final = 10.0
BACKOFF_LIMIT: Final = 300.0
WITHOUT_RIGHT: Final = 3600.0
"""Seconds between two requests while the right is missing; an administrator may grant it."""
_SECONDS: Final = 10.0
"""For one answer of the API server."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("wholeip")


class EventWriter:
    """Receives the reports of each update, and sends their Events while it runs.

    `nodes` returns the present names of the cluster's Nodes, `node` is the name of this agent's Node.
    """

    def __init__(
        self,
        client: ApiClient,
        node: str,
        nodes: Callable[[], Collection[str]],
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._node = node
        self._schedule = Schedule(node, nodes, draw)
        self._woken = trio.Event()
        self._draw = draw
        self._failures = 0
        self._logged = set[str]()
        """The kinds of errors that were logged: a small closed set."""

    def note(self, services: Iterable[str] | None, plan: Plan) -> None:
        """The kernel has this plan; only the reports of these Services may have changed, or any (None)."""
        self._schedule.note(services, plan, trio.current_time())
        self._woken.set()

    async def run(self) -> NoReturn:
        """Send Events until cancelled."""
        while True:
            event = self._schedule.next(trio.current_time())
            if event is None:
                await self._rest()
            else:
                await trio.sleep(await self._send(event))

    async def _rest(self) -> None:
        """Wait until an Event is due, or reports have changed."""
        self._woken = trio.Event()
        with trio.move_on_at(self._schedule.due):
            await self._woken.wait()

    async def _send(self, event: ServiceEvent) -> float:
        """One request; the seconds to wait afterwards."""
        time = datetime.now(UTC)
        body = make_event(
            AGENT, event.about, event.reason, event.note, suppressed=0, time=time, instance=self._node, name=event.name
        )
        path = event_path(event.about)
        try:
            await self._client.change("POST", path, {}, body, content_type="application/json", seconds=_SECONDS)
        except Conflict:
            # Another agent has sent it, or this one before its restart.
            pass
        except ApiError as error:
            return self._fail(event, error)
        self._failures = 0
        self._schedule.sent(event, trio.current_time())
        return PACE

    def _fail(self, event: ServiceEvent, error: ApiError) -> float:
        """The seconds to wait after an error."""
        if _lacks_right(error):
            right = f"create on events of {GROUP}, in every namespace"
            self._warn("no Events: a right is missing", "right", right=right, cause=str(error))
            return WITHOUT_RIGHT
        self._warn("cannot make an Event", error.cause, namespace=namespace_of(event.about), cause=str(error))
        if isinstance(error, ServerTrouble | TooManyRequests | Unauthorized):
            self._failures += 1
            self._schedule.failed(event, trio.current_time())
            wait = min(BACKOFF_FIRST * 2.0 ** min(self._failures - 1, 16), BACKOFF_LIMIT)
            return max(wait * (1 + self._draw()), min(error.retry_after or 0.0, WITHOUT_RIGHT))
        # This Event is refused, for instance because its namespace is being deleted, and others may not be.
        self._schedule.sent(event, trio.current_time())
        return PACE

    def _warn(self, text: str, key: str, **values: str) -> None:
        if key not in self._logged:
            self._logged.add(key)
            log.warning(text, **values)


def _lacks_right(error: ApiError) -> bool:
    """Whether RBAC refuses: an admission plugin, a quota or the end of a namespace is a 403 too, and names the Event.

    https://github.com/kubernetes/apiserver/blob/v0.34.4/pkg/endpoints/handlers/responsewriters/errors.go
    """
    return isinstance(error, Forbidden) and "is forbidden: User " in str(error)
