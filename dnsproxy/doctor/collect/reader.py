"""The reader: GET requests to one API server, whose refusals are facts.

The law: only get and list, each request within its deadline. What RBAC does not allow, what is not there and what is
unreadable is noted and passed over; only an API server that does not answer at all ends the look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from dnsproxy.doctor.facts.model import Refusal
from sidecar.errors import ExitStatus, StartError
from sidecar.kubernetes.errors import ApiError, Forbidden, Garbled, NotFound, Unauthorized
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.objects import Collection, Resource, Unreadable
from sidecar.kubernetes.one_shot import get_object, list_all
from sidecar.kubernetes.structs.workload import ConfigMap
from sidecar.kubernetes.watch_policy import Pace

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

REQUEST_SECONDS: Final = 15.0
_PACE: Final = Pace(list_timeout=REQUEST_SECONDS)
_FAULTS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class Reader:
    """Reads objects; `refusals` says of what it could not."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._refusals: dict[Refusal, None] = {}

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """In the order in which they were met."""
        return tuple(self._refusals)

    async def get(self, path: str, kind: type[T], what: str, *, quiet: bool = False) -> T | None:
        """One object; None where there is none, or a refusal says why. `quiet`: of a refusal nothing follows."""
        try:
            return await get_object(self._client, path, kind, seconds=REQUEST_SECONDS)
        except NotFound:
            return None
        except ApiError as error:
            self._note(error, what, quiet=quiet and not isinstance(error, Garbled))
            return None

    async def list(self, path: str, kind: type[R], what: str, *, selector: str = "", most: int = 0) -> list[R] | None:
        """All objects of a collection, or the first few; one that is unreadable is left out and noted.

        None where a refusal says why; a kind that the server does not have is an empty list.
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
                self.refuse(one, f"unreadable: {unreadable.reason}")
        return [value for value in found.values() if not isinstance(value, Unreadable)]

    async def config_map(self, namespace: str, name: str) -> Mapping[str, str]:
        """The data of a ConfigMap; empty if it is absent or refused."""
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = await self.get(path, ConfigMap, f"get configmaps {name} in namespace {namespace}")
        return (found.data or {}) if found else {}

    async def text(self, path: str) -> str:
        """A body as text. Raises ApiError."""
        return (await self._client.get(path, seconds=REQUEST_SECONDS)).decode(errors="replace")

    def refuse(self, what: str, why: str) -> None:
        """Note what could not be looked at."""
        self._refusals[Refusal(what, why)] = None

    def _note(self, error: ApiError, what: str, *, quiet: bool = False) -> None:
        """Note why something was not read. Raises StartError where the API server accepts no credentials of ours."""
        if isinstance(error, Unauthorized):
            raise self._gone(error) from None
        if not quiet:
            kinds = {Forbidden: "forbidden: ", Garbled: "unreadable: "}
            self.refuse(what, f"{kinds.get(type(error), '')}{error}")

    async def check(self) -> str:
        """The version of the server. Raises StartError with status 3 where it does not answer."""
        try:
            body = await self._client.get("/version", seconds=REQUEST_SECONDS)
        except (Forbidden, NotFound):
            return ""
        except ApiError as error:
            raise self._gone(error) from None
        try:
            version = msgspec.json.decode(body, type=dict[str, Any]).get("gitVersion", "")
        except _FAULTS:
            return ""
        return version if isinstance(version, str) else ""

    def _gone(self, error: ApiError) -> StartError:
        cluster = self._client.cluster
        return StartError(
            f"the API server at {cluster.server} ({cluster.origin}) could not be asked: {error}",
            status=ExitStatus.UNKNOWN,
        )
