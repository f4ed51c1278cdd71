"""HTTP to one API server: requests out, bytes or an ApiError back.

The law: only this module knows the HTTP client. It adds credentials, renews them once if the server rejects them,
limits the time of every request, and translates every error of the connection. It never retries: watch_policy.py
decides that for followers, and after a change that timed out only the object itself shows whether it was made.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Final

import httpcore2  # noqa: F401  # httpx2 would import it with the first client, which blocks the loop for 15 ms
import httpx2
import trio

from sidecar.kubernetes.body import body_of
from sidecar.kubernetes.cluster import Cluster, ClusterConfigError
from sidecar.kubernetes.errors import ApiError, Oversized, ServerTrouble, TimedOut, Unauthorized, error_from_response
from sidecar.values.text import message_of

_HEADERS: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": "switchback",
}
_COMPRESSED: Final = {"accept-encoding": "gzip"}
"""For lists: they shrink to a tenth, in size and in number of pieces, and a piece costs the event loop more than its
decompression. The server compresses neither watches nor small bodies."""
_ERROR_BODY_LIMIT: Final = 64 << 10
_CLOSE_SECONDS: Final = 1.0
"""Closing sends a TLS close_notify to the server, which may no longer read."""
_TIMEOUTS: Final = httpx2.Timeout(None, connect=5.0, write=10.0)
"""Each request has a deadline of its own for reading, which a server that sends byte by byte cannot extend."""
_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=60.0)
"""Each watch holds a connection, and must never wait for another's. A TLS handshake costs the event loop milliseconds,
so idle connections are kept for occasional requests."""
_DONE: Final = frozenset([HTTPStatus.OK, HTTPStatus.CREATED])


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, without credentials."""

    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    method: str = "GET"
    content: bytes | None = None


class ApiClient:
    """An API server's client; an async context manager. Any number of tasks may use it at the same time."""

    def __init__(self, cluster: Cluster, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._cluster = cluster
        self._transport = transport
        self._renewing = trio.Lock()
        self._http: httpx2.AsyncClient | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster as last read."""
        return self._cluster

    async def __aenter__(self) -> ApiClient:
        self._http = self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, seconds: float, largest: int | None = None
    ) -> bytes:
        """A whole body, within `seconds`. Raises ApiError: Oversized if it has more than `largest` octets."""
        pieces, size = [], 0
        async with self._open_stream(_Call(path, params or {}, _COMPRESSED), seconds=seconds) as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if largest is not None and size > largest:
                    raise Oversized(f"the answer has more than {largest} octets")
        return b"".join(pieces)

    async def change(
        self, method: str, path: str, params: Mapping[str, str], content: bytes, *, content_type: str, seconds: float
    ) -> bytes:
        """Change an object; returns the body of the answer. Raises ApiError: Conflict if it was changed meanwhile."""
        call = _Call(path, params, {"content-type": content_type}, method, content)
        async with self._open_stream(call, seconds=seconds) as chunks:
            return b"".join([chunk async for chunk in chunks])

    def stream(
        self, path: str, params: Mapping[str, str] | None = None, *, seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """A body chunk by chunk; all of it, and the block, within `seconds`.

        Raises ApiError, also from within the iteration.
        """
        return self._open_stream(_Call(path, params or {}, {}), seconds=seconds)

    @asynccontextmanager
    async def _open_stream(self, call: _Call, *, seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        with _translated(seconds), trio.fail_after(seconds):
            response = await self._send_authorized(call)
            try:
                async with body_of(response) as chunks:
                    yield chunks
            finally:
                with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await response.aclose()

    async def _send_authorized(self, call: _Call) -> httpx2.Response:
        cluster = self._cluster
        try:
            return await self._send(call)
        except Unauthorized:
            pass
        except httpx2.ConnectError as error:
            # A rotated CA causes a TLS error.
            if not _is_about_tls(error):
                raise
        await self._renew(cluster)
        return await self._send(call)

    async def _send(self, call: _Call) -> httpx2.Response:
        if self._http is None:
            raise RuntimeError("an ApiClient is used inside `async with`")
        url = f"{self._cluster.server}{call.path}"
        request = self._http.build_request(
            call.method, url, params=dict(call.params), headers=dict(call.headers), content=call.content
        )
        authorization = await self._authorization()
        if authorization is not None:
            request.headers["authorization"] = authorization
        if self._cluster.tls.server_name:
            request.extensions["sni_hostname"] = self._cluster.tls.server_name
        response = await self._http.send(request, stream=True)
        if response.status_code in _DONE:
            return response
        try:
            raise await _error_of(response)
        finally:
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await response.aclose()

    async def _authorization(self) -> str | None:
        try:
            if not self._cluster.blocks:
                return self._cluster.read_authorization()
            return await trio.to_thread.run_sync(self._cluster.read_authorization, abandon_on_cancel=True)
        except ClusterConfigError as error:
            raise Unauthorized(str(error)) from error

    async def _renew(self, refused: Cluster) -> None:
        """Read the cluster again, unless another request has done so meanwhile."""
        async with self._renewing:
            if self._cluster is not refused:
                return
            try:
                cluster = await trio.to_thread.run_sync(refused.reload, abandon_on_cancel=True)
            except ClusterConfigError as error:
                raise Unauthorized(str(error)) from error
            self._cluster = cluster
            if (cluster.tls, cluster.proxy) != (refused.tls, refused.proxy):
                old, self._http = self._http, self._open()
                if old is not None:
                    await old.aclose()

    def _open(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=self._cluster.tls.make_context(),
            proxy=self._cluster.proxy,
            trust_env=self._cluster.trust_env,
            headers=_HEADERS,
            timeout=_TIMEOUTS,
            limits=_LIMITS,
            transport=self._transport,
        )


@contextmanager
def _translated(seconds: float) -> Iterator[None]:
    """Turn exceptions of the HTTP client and of the deadline, after `seconds`, into ApiErrors."""
    try:
        yield
    except trio.TooSlowError as error:
        raise TimedOut(f"no answer within {seconds:g} s") from error
    except httpx2.ConnectTimeout as error:
        raise TimedOut(f"no connection within {_TIMEOUTS.connect:g} s") from error
    except httpx2.TimeoutException as error:
        raise TimedOut(f"no answer in time ({type(error).__name__})") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, zlib.error) as error:
        raise ServerTrouble(_reason(error)) from error


async def _error_of(response: httpx2.Response) -> ApiError:
    body = b""
    async with body_of(response) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > _ERROR_BODY_LIMIT:
                break
    return error_from_response(response.status_code, body, retry_after=response.headers.get("retry-after"))


def _reason(error: BaseException) -> str:
    """The message of the exception, or the first non-empty one of its causes: a failed handshake is the innermost."""
    found: BaseException | None = error
    while found is not None and not str(found):
        found = found.__cause__ or found.__context__
    return message_of(found) if found is not None else type(error).__name__


def _is_about_tls(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error is not None
