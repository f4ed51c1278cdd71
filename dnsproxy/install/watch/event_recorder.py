"""Creates the Events of a watcher in the background.

The law: the watcher never waits for an Event; if the API server rejects one, that is logged once and it is dropped.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Final, NamedTuple, NoReturn

import structlog
import trio

from dnsproxy.install.watch.event import About, Limit, Reason, admit, event_path, make_event
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient

_QUEUED: Final = 16
_SECONDS: Final = 10.0
"""Seconds for one answer of the API server."""

log = structlog.get_logger("dnsproxy.install")


class _Queued(NamedTuple):
    about: About
    reason: Reason
    note: str
    suppressed: int
    time: datetime


class EventRecorder:
    """Queues Events, and creates them while it runs."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._limit = Limit()
        self._failed = ""
        self._send, self._receive = trio.open_memory_channel[_Queued](_QUEUED)

    def record(self, about: About, reason: Reason, note: str) -> None:
        """Queue an Event, unless there was one for this reason shortly before."""
        self._limit, suppressed = admit(self._limit, reason, trio.current_time())
        if suppressed is not None:
            try:
                self._send.send_nowait(_Queued(about, reason, note, suppressed, datetime.now(UTC)))
            except trio.WouldBlock:
                # The API server is away; the log has the reason.
                return

    async def run(self) -> NoReturn:
        """Create Events until cancelled."""
        while True:
            await self._make(await self._receive.receive())

    async def _make(self, queued: _Queued) -> None:
        instance = os.uname().nodename
        body = make_event(
            queued.about, queued.reason, queued.note, suppressed=queued.suppressed, time=queued.time, instance=instance
        )
        try:
            await self._client.change(
                "POST", event_path(queued.about), {}, body, content_type="application/json", seconds=_SECONDS
            )
        except ApiError as error:
            if self._failed != error.cause:
                self._failed = error.cause
                log.warning("cannot make an Event", namespace=queued.about.namespace, cause=str(error))
        else:
            self._failed = ""
