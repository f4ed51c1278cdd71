"""The reader: GET requests to one API server, whose failures are facts.

The law: only get and list, each request within its deadline. A request that RBAC denies, an absent object and an
unreadable one are noted, and the reading continues; it ends only if the API server cannot be used at all. Tested in
tests/dnsproxy/doctor/collect/test_collecting.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from dnsproxy.doctor.facts.model import ReadFailure
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, Unauthorized
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import Pace
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

REQUEST_SECONDS: Final = 15.0
_PACE: Final = Pace(list_timeout=REQUEST_SECONDS)
_FAULTS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class Reader:
    """Reads objects; `failures` holds what could not be read."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._failures: dict[ReadFailure, None] = {}

    @property
    def failures(self) -> tuple[ReadFailure, ...]:
        """In the order in which they occurred."""
        return tuple(self._failures)

    async def get(self, path: str, kind: type[T], what: str, *, quiet: bool = False) -> T | None:
        """One object; None if it is absent or could not be read. `quiet`: only an unreadable object is noted."""
        try:
            return await get_object(self._client, path, kind, seconds=REQUEST_SECONDS)
        except NotFound:
            return None
        except ApiError as error:
            self._note(error, what, quiet=quiet and not isinstance(error, Garbled))
            return None

    async def list(self, path: str, kind: type[R], what: str, *, selector: str = "", most: int = 0) -> list[R] | None:
        """All objects of a collection, or the first few; an unreadable object is noted and skipped.

        None if the list could not be read; a kind that the server does not have is an empty list.
        """
        collection = Collection(what, path, kind, label_selector=selector)
        one = f"one of {what}"
        try:
            found = await list_all(
                self._client, collection, pace=_PACE, most=most, on_garbled=lambda error: self._note(error, one)
            )
        except NotFound:
            return []
        except ApiError as error:
            self._note(error, what)
            return None
        for unreadable in found.values():
            if isinstance(unreadable, Unreadable):
                self.note_failure(one, f"unreadable: {unreadable.reason}")
        return [value for value in found.values() if not isinstance(value, Unreadable)]

    async def config_map(self, namespace: str, name: str) -> Mapping[str, str]:
        """The data of a ConfigMap; empty if it is absent or could not be read."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = await self.get(path, ConfigMap, f"get configmaps {name} in namespace {namespace}")
        return (found.data or {}) if found else {}

    async def text(self, path: str) -> str:
        """A body as text. Raises ApiError."""
        return (await self._client.get(path, seconds=REQUEST_SECONDS)).decode(errors="replace")

    def note_failure(self, what: str, why: str) -> None:
        """Add a failure."""
        self._failures[ReadFailure(what, why)] = None

    def _note(self, error: ApiError, what: str, *, quiet: bool = False) -> None:
        """Note why a request failed. Raises StartError if the API server rejects our credentials."""
        if isinstance(error, Unauthorized):
            raise self._cannot_ask(error) from None
        if not quiet:
            kinds = {Forbidden: "forbidden: ", Garbled: "unreadable: "}
            self.note_failure(what, f"{kinds.get(type(error), '')}{error}")

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
        cluster = self._client.cluster
        return StartError(
            f"the API server at {cluster.server} ({cluster.origin}) could not be asked: {error}",
            status=ExitStatus.UNKNOWN,
        )
