"""The reader: GET requests to one API server, whose failures are facts.

The law: only get and list, each request within its deadline, a few at a time. A failed read is a ReadFailure under the
name of its request, never an absence; only 404 is an absence. The reading continues, and ends only if the API server
cannot be used at all. Tested in tests/dnsproxy/doctor/collect/test_reader.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import trio

from dnsproxy.doctor.facts.model import ReadFailure
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, TimedOut, Unauthorized
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.reads import Reads
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

REQUEST_SECONDS: Final = 15.0
"""For one response of the API server."""
LIST_SECONDS: Final = 90.0
"""For all pages of one list: a server that takes seconds for each must not keep a user waiting for a hundred."""
MOST_AT_ONCE: Final = 8
"""Requests under way: enough that a slow server costs a few rounds, and few beside the 400 that a server takes."""
FORBIDDEN: Final = "forbidden: "
"""The beginning of a failure for which a right is missing."""
_SHOWN: Final = 3
_PACE: Final = Pace(list_timeout=REQUEST_SECONDS)
_FAULTS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)

Progress = Callable[[str], None]
"""Called with a description of the current work, for users who wait."""


class Reader:
    """Reads objects; `failures` holds what could not be read. Any number of tasks may use it at the same time."""

    def __init__(self, client: Reads, progress: Progress = lambda _: None) -> None:
        self._client = client
        self._progress = progress
        self._limiter = trio.CapacityLimiter(MOST_AT_ONCE)
        self._failures: set[ReadFailure] = set()
        self._under_way: list[str] = []
        self._counts: dict[str, int] = {}
        self._done = 0
        self._known = 0

    @property
    def failures(self) -> tuple[ReadFailure, ...]:
        """Sorted, because the order in which they occurred depends on the server."""
        return tuple(sorted(self._failures, key=lambda failure: (failure.what, failure.why)))

    @asynccontextmanager
    async def turn(self, what: str) -> AsyncIterator[None]:
        """A turn for one read, which is shown as the current work."""
        self._known += 1
        async with self._limiter:
            self._under_way.append(what)
            self._show()
            try:
                yield
            finally:
                self._under_way.remove(what)
                self._done += 1
                self._show()

    def _show(self) -> None:
        if self._under_way:
            names = ", ".join(map(self._shown, self._under_way[:_SHOWN]))
            more = len(self._under_way) - _SHOWN
            self._progress(f"reading: {names}{f' and {more} more' if more > 0 else ''} ({self._done} of {self._known})")

    def _shown(self, what: str) -> str:
        """A read, with the number of objects of a list of several pages."""
        count = self._counts.get(what, 0)
        return f"{what}: {count:,}" if count >= _PACE.page_size else what

    async def get(self, path: str, kind: type[T], what: str) -> T | None:
        """One object; None if it is absent or could not be read."""
        async with self.turn(what):
            try:
                return await get_object(self._client, path, kind, seconds=REQUEST_SECONDS)
            except NotFound:
                return None
            except ApiError as error:
                self.note(error, what, path)
                return None

    async def list(
        self,
        path: str,
        kind: type[R],
        what: str,
        *,
        selector: str = "",
        most: int = 0,
        names_hosts: bool = False,
    ) -> list[R] | None:
        """All objects of a collection, or the first few; an unreadable object is noted and skipped.

        `names_hosts`: whether a failure means that hosts may be missing, and its name is not in refusals.HOST_LISTS.
        None if the list could not be read; a kind that the server does not have is an empty list.
        """
        collection = Collection(what, path, kind, label_selector=selector)
        one = f"one of {what}"
        async with self.turn(what):
            try:
                found = await self._list_all(collection, most, lambda error: self.note(error, one, path))
            except NotFound:
                return []
            except ApiError as error:
                self.note(error, what, path, names_hosts=names_hosts)
                return None
        for unreadable in found.values():
            if isinstance(unreadable, Unreadable):
                self.note_failure(one, f"unreadable: {unreadable.reason}")
        return [value for value in found.values() if not isinstance(value, Unreadable)]

    async def _list_all(
        self, collection: Collection[R], most: int, on_garbled: Callable[[Garbled], None]
    ) -> dict[str, R | Unreadable]:
        """Raises ApiError: TimedOut if all pages together take too long."""

        def show(count: int) -> None:
            self._counts[collection.kind] = count
            self._show()

        try:
            with trio.fail_after(LIST_SECONDS):
                return await list_all(
                    self._client, collection, pace=_PACE, most=most, on_garbled=on_garbled, on_page=show
                )
        except trio.TooSlowError:
            raise TimedOut(f"no whole list within {LIST_SECONDS:g} s") from None
        finally:
            self._counts.pop(collection.kind, None)

    async def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap; None if it is absent or could not be read."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = await self.get(path, ConfigMap, f"get configmaps {name} in namespace {namespace}")
        return (found.data or {}) if found else None

    async def text(self, path: str, what: str) -> str:
        """A body as text. Raises ApiError."""
        async with self.turn(what):
            return (await self._client.get(path, seconds=REQUEST_SECONDS)).decode(errors="replace")

    def note_failure(self, what: str, why: str, *, names_hosts: bool = False) -> None:
        """Add a failure."""
        self._failures.add(ReadFailure(what, why, names_hosts))

    def note(self, error: ApiError, what: str, path: str, *, names_hosts: bool = False) -> None:
        """Note why a request failed. Raises StartError if the API server rejects our credentials."""
        if isinstance(error, Unauthorized):
            raise self._cannot_ask(error) from None
        kinds = {Forbidden: FORBIDDEN, Garbled: "unreadable: ", TimedOut: f"GET {path}: "}
        self.note_failure(what, f"{kinds.get(type(error), '')}{error}", names_hosts=names_hosts)

    async def check(self) -> str:
        """The version of the server. Raises StartError with status 3 if it does not answer."""
        try:
            body = await self._client.get("/version", seconds=REQUEST_SECONDS)
        except (Forbidden, NotFound):
            return ""
        except ApiError as error:
            raise self._cannot_ask(error) from None
        try:
            version = msgspec.json.decode(body, type=dict[str, Any]).get("gitVersion", "")
        except _FAULTS:
            return ""
        return version if isinstance(version, str) else ""

    def _cannot_ask(self, error: ApiError) -> StartError:
        return StartError(could_not_ask(self._client.cluster, error), status=ExitStatus.UNKNOWN)
