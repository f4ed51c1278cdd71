"""List and watch: follows one collection for the life of the program, through every failure of the API server.

The law: this shell moves bytes, waits and reports. protocol.py decodes, store.py decides what changed, and
watch_policy.py decides the next request. An object is never removed without proof that it was deleted.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Final, Generic, NoReturn, TypeVar

import structlog
import trio

from sidecar.kubernetes import watch_policy as policy
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound, ServerTrouble
from sidecar.kubernetes.follower_status import RESTORED, FollowerState, FollowerStatus
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.protocol import Decoder, Page, in_parts
from sidecar.kubernetes.reading import read_pages, read_version, read_watch
from sidecar.kubernetes.store import Relist, Store
from sidecar.kubernetes.watch_policy import DEFAULT_PACE, Pace, Position

T = TypeVar("T", bound=Resource)

Changes = Mapping[str, T | Unreadable | None]
"""By key (`NAMESPACE/NAME`): the current object, or None if it was deleted."""

_QUEUED: Final = 256
"""Chunks of a watch that may wait while changes are handled; with more, the server has to wait."""

_log = structlog.get_logger("kubernetes")


async def follow(
    client: ApiClient,
    collection: Collection[T],
    *,
    on_change: Callable[[Changes[T]], None],
    on_synced: Callable[[], None] = lambda: None,
    on_status: Callable[[], None] = lambda: None,
    status: FollowerStatus | None = None,
    expected: int = 0,
    pace: Pace = DEFAULT_PACE,
    draw: Callable[[], float] = random.random,
) -> NoReturn:
    """Report the objects of the collection and their changes to `on_change`, until cancelled.

    Changes that arrive together are reported together, at most `pace.slice_size` per call; between two calls, other
    tasks run. `on_synced` is called after each whole list; from the first time on, the reported objects are the state
    of the cluster. `on_status` is called after `status` changed. An exception from a function is a bug and ends the
    follower. `expected` is about the number of objects in an earlier run: a first list with almost none of them must be
    confirmed by a second one.
    """
    store: Store[T] = Store(expected=expected)
    status = status or FollowerStatus()
    calls = (on_change, on_synced, on_status)
    await _Follower(client, collection, store, calls, status=status, pace=pace, draw=draw).run()


class _Follower(Generic[T]):
    def __init__(
        self,
        client: ApiClient,
        collection: Collection[T],
        store: Store[T],
        calls: tuple[Callable[[Changes[T]], None], Callable[[], None], Callable[[], None]],
        *,
        status: FollowerStatus,
        pace: Pace,
        draw: Callable[[], float],
    ) -> None:
        self.client = client
        self.collection = collection
        self.on_change, self.on_synced, self.on_status = calls
        self.status = status
        self.pace = pace
        self.draw = draw
        self.store = store
        self.decoder = Decoder(collection.type, collection.annotation_selector)
        self.reported: str | None = None
        status.kind = collection.kind

    async def run(self) -> NoReturn:
        position = Position()
        while True:
            await trio.sleep(position.wait)
            if not position.version:
                position = await self.sync(position)
            elif position.unsure:
                position = await self.check(position)
            else:
                position = await self.watch(position)

    async def check(self, position: Position) -> Position:
        """Ask for the present version, which costs the server one object, and decide whether a watch can go on."""
        try:
            current = await read_version(self.client, self.collection, self.decoder, self.pace)
        except ApiError as error:
            return self.fail(position, error, version=position.version, lasted=0.0)
        return policy.after_check(position, current=current, now=trio.current_time(), pace=self.pace)

    async def sync(self, position: Position) -> Position:
        """Read the whole collection, chunk by chunk."""
        if self.status.error is None:
            self.status.state = FollowerState.SYNCING
        started = trio.current_time()
        relist = self.store.relist()
        version, error = await self.take_pages(relist, position)
        position = policy.after_pages(position, version=version)
        if error is not None and not self.means_empty(error):
            return self.fail(position, error, version="", lasted=0.0)
        if relist.is_doubtful and not position.doubted:
            return self.doubt(position, relist)
        await self.finish(relist, started)
        position = policy.after_list(position, version=version, now=trio.current_time())
        return position if error is None else self.fail(position, error, version="", lasted=0.0)

    async def take_pages(self, relist: Relist[T], position: Position) -> tuple[str, ApiError | None]:
        """Report each chunk as it arrives; returns the version of the list, and the error that ended it."""
        version, error = "", None
        send, receive = trio.open_memory_channel[Page | ApiError](0)
        with receive:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read_pages, self.client, self.collection, self.decoder, self.pace, send)
                async for page in receive:
                    if isinstance(page, ApiError):
                        error = page
                        break
                    self.answered(FollowerState.SYNCING)
                    self.status.pages += 1
                    if not version and policy.is_earlier(page.version, than=position.seen):
                        self.note_restored(position.seen, page.version)
                    version = page.version
                    error = await self.take_items(page, relist)
                    if error is not None:
                        nursery.cancel_scope.cancel()
                        break
        return version, error

    async def take_items(self, page: Page, relist: Relist[T]) -> ApiError | None:
        """Decode and report the objects of a page in slices; returns the error of one of them."""
        for part in in_parts(page.items, most=self.pace.slice_size, octets=self.pace.slice_octets):
            try:
                entries = self.decoder.decode_items(part)
            except ApiError as error:
                return error
            await self.hand_over(relist.take(entries))
        return None

    def note_restored(self, seen: str, version: str) -> None:
        """The cluster's state is an earlier one, in which a known version may belong to another content."""
        self.store.forget_versions()
        self.status.errors[RESTORED] += 1
        _log.warning("the cluster was restored to an earlier state", kind=self.collection.kind, seen=seen, now=version)

    def means_empty(self, error: ApiError) -> bool:
        """Whether the kind does not exist (any more), which counts as an empty list, and may be doubted like one."""
        hidden = isinstance(error, Forbidden) and self.collection.optional and not self.status.synced
        absent = isinstance(error, NotFound) and not self.collection.discovered
        return absent or hidden

    def doubt(self, position: Position, relist: Relist[T]) -> Position:
        self.status.doubted = True
        self.on_status()
        _log.warning("list lost nearly everything, asking again", kind=self.collection.kind, held=relist.held)
        return policy.after_doubt(position, pace=self.pace)

    async def finish(self, relist: Relist[T], started: float) -> None:
        """Remove the objects that are missing in a complete list, and report the sync."""
        missing = relist.missing()
        while part := list(islice(missing, self.pace.slice_size)):
            await self.hand_over(self.store.apply(part))
        first, self.status.synced = not self.status.synced, True
        self.status.doubted = False
        self.store.expected = 0
        self.status.lists += 1
        self.status.synced_time = time.time()
        self.on_status()
        self.on_synced()
        if first:
            seconds = round(trio.current_time() - started, 3)
            _log.info("synced", kind=self.collection.kind, objects=len(self.store), seconds=seconds)

    async def watch(self, position: Position) -> Position:
        """Report changes from a version on, until the server ends the watch or an error does."""
        version, started = position.version, trio.current_time()
        self.status.watches += 1
        error = None
        send, receive = trio.open_memory_channel[list[bytes] | ApiError](_QUEUED)
        with receive:
            async with trio.open_nursery() as nursery:
                answered = partial(self.answered, FollowerState.WATCHING)
                nursery.start_soon(read_watch, self.client, self.collection, version, self.pace, answered, send)
                async for item in receive:
                    version, error = await self.take_waiting(item, receive, version)
                    if error is not None:
                        nursery.cancel_scope.cancel()
                        break
        now = trio.current_time()
        lasted = now - started
        if lasted >= self.pace.steady:
            self.settled()
        elif error is None:
            error = ServerTrouble("the server ended the watch at once")
        if error is not None:
            return self.fail(position, error, version=version, lasted=lasted)
        return policy.after_watch(position, version=version, now=now, lasted=lasted, pace=self.pace)

    async def take_waiting(
        self,
        item: list[bytes] | ApiError,
        receive: trio.MemoryReceiveChannel[list[bytes] | ApiError],
        version: str,
    ) -> tuple[str, ApiError | None]:
        """Report the changes of `item` and of all waiting items; returns the new version, and the final error."""
        lines: list[bytes] = []
        ended: ApiError | None = None
        while isinstance(item, list):
            lines += item
            try:
                item = receive.receive_nowait()
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        else:
            ended = item
        for part in in_parts(lines, most=len(lines), octets=self.pace.slice_octets):
            try:
                batch = self.decoder.decode_events(part)
            except ApiError as error:
                return version, error
            self.status.events += len(batch.entries)
            self.status.bookmarks += batch.bookmarks
            await self.hand_over(self.store.apply(batch.entries))
            version = batch.version or version
            if batch.error is not None:
                return version, batch.error
        return version, ended

    async def hand_over(self, changes: Changes[T]) -> None:
        """Report changes in slices, with other tasks in between."""
        self.status.objects = len(self.store)
        items = iter(changes.items())
        while part := dict(islice(items, self.pace.slice_size)):
            self.status.unreadable += sum(isinstance(value, Unreadable) for value in part.values())
            # Once for each slice: a log of warnings must not cost a look for each object.
            if _log.is_enabled_for(logging.DEBUG):
                self.log_objects(part)
            self.on_status()
            self.on_change(part)
            await trio.lowlevel.checkpoint()

    def log_objects(self, changes: Changes[T]) -> None:
        """Each object's event, by name and version: its content may be nobody's business."""
        for key, value in changes.items():
            what = "object deleted" if value is None else "object"
            unreadable = {"unreadable": value.reason} if isinstance(value, Unreadable) else {}
            _log.debug(what, kind=self.collection.kind, object=key, version=self.store.version_of(key), **unreadable)

    def fail(self, position: Position, error: ApiError, *, version: str, lasted: float) -> Position:
        self.status.errors[error.cause] += 1
        position = policy.after_error(
            position, error=error, version=version, lasted=lasted, pace=self.pace, random=self.draw()
        )
        if position.wait:
            self.status.state, self.status.error = FollowerState.RETRYING, error
            if self.reported != error.cause:
                # Once for each kind of error, not for each attempt.
                self.reported = error.cause
                _log.warning("retrying", kind=self.collection.kind, cause=error.cause, error=str(error))
        self.on_status()
        return position

    def answered(self, state: FollowerState) -> None:
        """The server sent a valid answer."""
        self.status.state, self.status.error = state, None
        self.status.contact = trio.current_time()
        self.status.contact_time = time.time()
        self.on_status()

    def settled(self) -> None:
        """A watch was steady: the last error is over."""
        if self.reported is not None:
            self.reported = None
            _log.info("recovered", kind=self.collection.kind)
