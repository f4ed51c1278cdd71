"""Creates the Events of a watcher in the background.

The law: the watcher never waits for an Event. One that the API server rejects is logged once and dropped; one that it
cannot take now is sent again, as client-go does (tools/record/event.go), and at the end of the watcher once more.
"""

from __future__ import annotations

import os
from collections import deque
from datetime import UTC, datetime
from typing import Final, NamedTuple, NoReturn

import structlog
import trio

from sidecar.kubernetes.errors import ApiError, Conflict, ServerTrouble, TooManyRequests, Unauthorized
from sidecar.kubernetes.events.event import About, Limit, Reason, Reporter, admit, event_path, make_event, namespace_of
from sidecar.kubernetes.http import ApiClient

_QUEUED: Final = 64
_SECONDS: Final = 10.0
"""Seconds for one answer of the API server."""
_TRIES: Final = 12
_PAUSE: Final = 10.0
"""Seconds between two tries."""
_LAST_SECONDS: Final = 1.0
"""Seconds for the Events that wait at the end."""


class _Queued(NamedTuple):
    about: About
    reason: Reason
    note: str
    suppressed: int
    time: datetime


class EventRecorder:
    """Queues Events, and creates them while it runs; `logger` is the name of the program's log."""

    def __init__(self, client: ApiClient, reporter: Reporter, *, logger: str) -> None:
        self._client = client
        self._reporter = reporter
        self._log = structlog.get_logger(logger)
        self._limit = Limit()
        self._failed = ""
        self._queue: deque[_Queued] = deque()
        self._news = trio.Event()

    def record(self, about: About, reason: Reason, note: str) -> None:
        """Queue an Event, unless there was one about this object for this reason shortly before."""
        limit, suppressed = admit(self._limit, about, reason, trio.current_time())
        if suppressed is not None and len(self._queue) >= _QUEUED:
            # The API server is away; the log has the reason.
            return
        self._limit = limit
        if suppressed is not None:
            self._queue.append(_Queued(about, reason, note, suppressed, datetime.now(UTC)))
            self._news.set()

    async def run(self) -> NoReturn:
        """Create Events until cancelled, and then those that wait."""
        try:
            while True:
                await self._news.wait()
                self._news = trio.Event()
                while self._queue:
                    await self._make_first()
        finally:
            with trio.move_on_after(_LAST_SECONDS, shield=True):
                while self._queue and await self._try(self._queue[0]):
                    self._queue.popleft()

    async def _make_first(self) -> None:
        """Create the first Event of the queue, where it stays until it is created or dropped."""
        for _ in range(_TRIES):
            if await self._try(self._queue[0]):
                break
            await trio.sleep(_PAUSE)
        self._queue.popleft()

    async def _try(self, queued: _Queued) -> bool:
        """Whether an Event is done: created or rejected."""
        body = make_event(
            self._reporter,
            queued.about,
            queued.reason,
            queued.note,
            suppressed=queued.suppressed,
            time=queued.time,
            instance=os.uname().nodename,
        )
        path = event_path(queued.about)
        try:
            await self._client.change("POST", path, {}, body, content_type="application/json", seconds=_SECONDS)
        except Conflict:
            # An earlier try created it, and its answer was lost.
            pass
        except ApiError as error:
            if self._failed != error.cause:
                self._failed = error.cause
                self._log.warning("cannot make an Event", namespace=namespace_of(queued.about), cause=str(error))
            return not isinstance(error, ServerTrouble | TooManyRequests | Unauthorized)
        self._failed = ""
        return True
