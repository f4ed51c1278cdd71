"""The watcher of one Service: lists and watches it by name, sends the patches of its plan, and reports both.

The law: a thin shell around plan.py, which decides. One write at a time, each with a test on the resource version that
was seen; so any number of watchers may run without a leader. It needs list, watch and patch for this name alone.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec
import structlog
import trio

from dnsproxy.ip_mode.status_patch import CONTENT_TYPE
from dnsproxy.ip_mode.status_writers import ManagedService
from dnsproxy.ip_mode.watch import event_reasons
from dnsproxy.ip_mode.watch.observed import Observed, observe
from dnsproxy.ip_mode.watch.plan import (
    Event,
    Overtaken,
    Seen,
    Standing,
    Tick,
    WatchState,
    WriteFailed,
    Written,
    watch_step,
)
from dnsproxy.ip_mode.watch.watch_status import ServiceStatus
from sidecar.kubernetes.errors import ApiError, Conflict, Forbidden, NotFound, Refused
from sidecar.kubernetes.events.event import About, Reason
from sidecar.kubernetes.events.recorder import EventRecorder
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Collection, Unreadable
from sidecar.kubernetes.protocol import FAULTS
from sidecar.values.text import one_line

LOGGER: Final = "dnsproxy.ip_mode"
MANAGER: Final = "switchback-ip-mode-watch"
"""The field manager of the writes."""
_SECONDS: Final = 10.0
"""For one answer of the API server."""
_REASONS: Final = {
    Standing.UNDONE: event_reasons.UNDONE,
    Standing.REFUSED: event_reasons.REFUSED,
    Standing.NOT_KEPT: event_reasons.NOT_KEPT,
    Standing.FAILED: event_reasons.FAILED,
}
Judge = Callable[[ManagedService], str]
"""Why ipMode of a Service must not be written, or ``."""

log = structlog.get_logger(LOGGER)


def collection_of(status: ServiceStatus) -> Collection[ManagedService]:
    """The Service as a collection of one, so that RBAC can be limited to its name."""
    path = f"/api/v1/namespaces/{status.ref.namespace}/services"
    return Collection("Service", path, ManagedService, field_selector=f"metadata.name={status.ref.name}")


class ServiceWatcher:
    """Keeps the ipMode of one Service until it is cancelled."""

    def __init__(self, client: ApiClient, status: ServiceStatus, *, judge: Judge) -> None:
        self._client = client
        self._status = status
        self._judge = judge
        self._recorder = EventRecorder(client, event_reasons.WATCHER, logger=LOGGER)
        self._present: Observed | None = None
        self._news = False
        self._wake = trio.Event()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._recorder.run)
            nursery.start_soon(self._follow)
            while True:
                # First of all: before the first list it is not known whether the Service exists.
                await self._rest()
                writes = self._advance(self._next())
                while writes:
                    writes = self._advance(await self._write())

    async def _follow(self) -> NoReturn:
        await follow(
            self._client,
            collection_of(self._status),
            on_change=self._on_change,
            on_synced=self._tell,
            status=self._status.follower,
        )

    def _on_change(self, changes: Changes[ManagedService]) -> None:
        for service in changes.values():
            self._present = self._observe(service) if service is not None else None
        self._tell()

    def _tell(self) -> None:
        self._news = True
        self._wake.set()

    def _observe(self, service: ManagedService | Unreadable) -> Observed:
        return observe(service, why_refused=self._judge(service) if isinstance(service, ManagedService) else "")

    def _next(self) -> Event:
        """The last state that the watch has shown, or the time."""
        news, self._news = self._news, False
        return Seen(self._present) if news else Tick()

    async def _rest(self) -> None:
        """Wait until a write is due, or the Service changes."""
        if not self._news:
            with trio.move_on_at(self._status.state.wake_at):
                await self._wake.wait()
        self._wake = trio.Event()

    def _advance(self, event: Event) -> bool:
        before = self._status.state
        drawn = random.random()  # noqa: S311  # no secret
        self._status.state, writes = watch_step(before, event, trio.current_time(), drawn)
        self._report(before, self._status.state, event)
        return writes

    async def _write(self) -> Event:
        seen, ref = self._status.state.seen, self._status.ref
        if seen is None:
            raise RuntimeError("a write of a Service that was not seen")
        path = f"/api/v1/namespaces/{ref.namespace}/services/{ref.name}/status"
        body = json.dumps(seen.patch).encode()
        try:
            answer = await self._client.change(
                "PATCH", path, {"fieldManager": MANAGER}, body, content_type=CONTENT_TYPE, seconds=_SECONDS
            )
            return Written(self._observe(msgspec.json.decode(answer, type=ManagedService)))
        except (Conflict, NotFound, Refused) as error:
            # A failed test of a JSON patch is 422, like an invalid patch: the watch shows which of them it is.
            return Overtaken(str(error))
        except Forbidden as error:
            self._count(error.cause)
            missing = f"patch on services/status, resourceNames {ref.name}, in {ref.namespace} is missing"
            return WriteFailed(f"{missing}: {error}")
        except ApiError as error:
            self._count(error.cause)
            return WriteFailed(str(error), error.retry_after or 0.0)
        except FAULTS as error:
            self._count("garbled")
            return WriteFailed(f"the answer to the patch cannot be read: {error}")

    def _count(self, cause: str) -> None:
        self._status.errors[cause] += 1
        self._status.error_time = time.time()

    def _report(self, before: WatchState, state: WatchState, event: Event) -> None:
        """Log what has changed, and create Events."""
        service = str(self._status.ref)
        if isinstance(event, Written) and state.standing is Standing.IN_PLACE:
            self._report_written(before, state)
        elif state.standing is not before.standing or state.why != before.why:
            if state.standing in _REASONS:
                log.warning(state.standing.value, service=service, cause=one_line(state.why))
            elif state.standing is Standing.WAITING:
                log.info("nothing to write", service=service, cause=one_line(state.why))
            elif state.standing is Standing.IN_PLACE:
                by = state.seen.writer if state.seen else ""
                text = "somebody else writes Proxy: the provider, an admission policy or another watch"
                log.info("in place", service=service, by=by, note="" if by == MANAGER else text)
        if state.standing in _REASONS and (state.standing is not before.standing or isinstance(event, WriteFailed)):
            # While a failure lasts, there is always an Event of it: the API server deletes Events after an hour.
            self._record(_REASONS[state.standing], state.why)

    def _report_written(self, before: WatchState, state: WatchState) -> None:
        writer = (before.seen.writer if before.seen else "") or "an unknown writer"
        count = len(before.seen.patch) - 1 if before.seen else 0
        log.info("written", service=str(self._status.ref), entries=count, after=one_line(writer), writes=state.writes)
        self._record(event_reasons.SET, f"ipMode Proxy was set in {count} entries that {writer} wrote")

    def _record(self, reason: Reason, note: str) -> None:
        seen, ref = self._status.state.seen, self._status.ref
        self._recorder.record(About("Service", ref.namespace, ref.name, seen.uid if seen else ""), reason, note)
