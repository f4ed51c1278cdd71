"""The reader: GET requests to one API server, whose refusals are facts.

The law: only get and list, in pages, each within its time. What RBAC does not allow, what is not there and what is
unreadable is noted and passed over; only an API server that does not answer at all ends the look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from dnsproxy.cluster_dns.structs import ConfigMap
from dnsproxy.doctor.facts.model import Refusal
from sidecar.errors import ExitStatus, StartError
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound, Unauthorized
from sidecar.kubernetes.http import ApiClient

T = TypeVar("T")

REQUEST_SECONDS: Final = 15.0
PAGE: Final = 500
_MOST_PAGES: Final = 1000
_FAULTS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class _Meta(msgspec.Struct, frozen=True):
    token: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] | None = None


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
        body = await self._fetch(path, {}, what, quiet=quiet)
        return None if body is None else self._decode(body, kind, what)

    async def list(self, path: str, kind: type[T], what: str, *, selector: str = "", most: int = 0) -> list[T] | None:
        """All objects of a collection, or the first few; one that is unreadable is left out and noted.

        None where a refusal says why; a kind that the server does not have is an empty list.
        """
        params = {"limit": str(most or PAGE)} | ({"labelSelector": selector} if selector else {})
        found: list[T] = []
        for _ in range(_MOST_PAGES):
            body = await self._fetch(path, params, what)
            if body is None:
                return None if self._is_refused(what) else found
            page = self._decode(body, _Page, what)
            for raw in (page.items or ()) if page else ():
                one = self._decode(raw, kind, f"one of {what}")
                found += [] if one is None else [one]
            if page is None or not page.metadata.token or most:
                return found
            params["continue"] = page.metadata.token
        return found

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

    async def _fetch(self, path: str, params: dict[str, str], what: str, *, quiet: bool = False) -> bytes | None:
        try:
            return await self._client.get(path, params, seconds=REQUEST_SECONDS)
        except NotFound:
            return None
        except Forbidden as error:
            if not quiet:
                self.refuse(what, f"forbidden: {error}")
            return None
        except Unauthorized as error:
            raise self._gone(error) from None
        except ApiError as error:
            if not quiet:
                self.refuse(what, str(error))
            return None

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

    def _decode(self, body: bytes | msgspec.Raw, kind: type[T], what: str) -> T | None:
        try:
            return msgspec.json.decode(body, type=kind)
        except _FAULTS as error:
            self.refuse(what, f"unreadable: {error}")
            return None

    def _is_refused(self, what: str) -> bool:
        return any(refusal.what == what for refusal in self._refusals)
