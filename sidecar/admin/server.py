"""The admin port: health, readiness, metrics and a status page over HTTP/1.1 (h11 on trio streams).

The law: a client can use only a bounded amount of memory and time. There are deadlines for the request head and for
each answer, a maximum head size, no request body, and one request per connection. As many are open as admin_share()
says; one more closes the oldest, so a probe gets through any number of idle clients. Live answers have places of their
own, a quarter of all at most: they neither take a place of a probe, nor lose theirs to one. Large answers are made in
pieces, one piece at a time over all clients: other tasks on the loop never wait for more than one piece.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import h11
import structlog
import trio
from prometheus_client import CollectorRegistry

from sidecar.admin.answers import (
    Answer,
    Readiness,
    Route,
    authority_of,
    metrics_answer,
    not_modified,
    page_answer,
    path_of,
    query_of,
    readiness_answer,
    refusal,
)
from sidecar.admin.hosts import Asked, is_loopback, refusal_of_host, unknown_host
from sidecar.admin.live_answers import most_live
from sidecar.admin.newest import Newest
from sidecar.admin.page.assets import asset_routes
from sidecar.admin.sending import Sender
from sidecar.sockets.accepting import accept_connections
from sidecar.sockets.descriptors import admin_share, descriptor_limit

__all__ = ["Readiness", "serve_admin"]

HEAD_SECONDS: Final = 5
ANSWER_SECONDS: Final = 5
"""For the check of the readiness."""
ROUTE_SECONDS: Final = 60
"""For an answer that waits for something else."""
LINGER_SECONDS: Final = 1
MAXIMUM_HEAD: Final = 16_384
_CHUNK: Final = 4_096

_NO_ROUTES: Final[Mapping[str, Route]] = MappingProxyType({})

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve_admin(
    listeners: Sequence[socket.socket],
    *,
    readiness: Callable[[], Readiness | Awaitable[Readiness]],
    registry: CollectorRegistry,
    page: Callable[[], str],
    routes: Mapping[str, Route] = _NO_ROUTES,
    names: frozenset[str] = frozenset(),
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled, then close the listeners (made by listen_tcp).

    `page` returns the HTML of `/`, with foreign text already escaped. `routes` maps further paths to functions. `names`
    are those by which clients may ask (hosts.py).
    """
    places = admin_share(descriptor_limit())
    live = most_live(places)
    resources = _Resources(readiness=readiness, registry=registry, page=page, routes=routes, names=names)
    sender = Sender(most_live=live)
    connections = Newest(places - live)

    async def serve_one(stream: trio.SocketStream) -> None:
        with connections.one() as leave_place:
            try:
                await _serve_connection(stream, resources, functools.partial(sender.send, leave_place=leave_place))
            except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                # Without a peer any more, its address is an OSError.
                pass
            except Exception:
                # An error in one connection must not end a program that is being asked for its health.
                log.exception("admin request failed")

    streams = [trio.SocketListener(trio.socket.from_stdlib_socket(listener)) for listener in listeners]
    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(_accept, stream, lambda accepted: nursery.start_soon(serve_one, accepted))
        task_status.started()


async def _accept(listener: trio.SocketListener, begin: Callable[[trio.SocketStream], None]) -> None:
    async with listener:
        await accept_connections(listener, begin, name="admin")


class _Resources:
    def __init__(
        self,
        *,
        readiness: Callable[[], Readiness | Awaitable[Readiness]],
        registry: CollectorRegistry,
        page: Callable[[], str],
        routes: Mapping[str, Route],
        names: frozenset[str],
    ) -> None:
        self.names = names
        self._readiness = readiness
        self._registry = registry
        self._page = page
        self._routes = {**asset_routes(), **routes}
        self.paths = frozenset({"/", "/healthz", "/readyz", "/metrics", *self._routes})

    async def answer(self, path: str, query: Mapping[str, str], accept: str, *, detailed: bool) -> Answer:
        """The answer for one of `paths`; `detailed` if the reason of the readiness may be shown."""
        if path in self._routes:
            answer = self._routes[path](query)
            if isinstance(answer, Answer):
                return answer
            with trio.fail_after(ROUTE_SECONDS):
                return await answer
        if path == "/readyz":
            return readiness_answer(await self._ask_readiness(), detailed=detailed)
        if path == "/metrics":
            return metrics_answer(self._registry, accept)
        return page_answer(self._page()) if path == "/" else Answer(200, b"ok\n")

    async def _ask_readiness(self) -> Readiness:
        with trio.move_on_after(ANSWER_SECONDS):
            readiness = self._readiness()
            return readiness if isinstance(readiness, Readiness) else await readiness
        return Readiness(ready=False, reason=f"the readiness check took longer than {ANSWER_SECONDS} s")


async def _serve_connection(
    stream: trio.SocketStream, resources: _Resources, send: Callable[..., Awaitable[None]]
) -> None:
    async with stream:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAXIMUM_HEAD)
        try:
            with trio.fail_after(HEAD_SECONDS):
                request = await _receive_request(stream, http)
        except h11.RemoteProtocolError as error:
            await send(stream, http, Answer(error.error_status_hint, b"This is not an HTTP request.\n"))
            await _linger(stream)
            return
        if request is not None:
            asked = _asked(request, stream)
            detailed = unknown_host(asked, resources.names) is None
            answer = refusal_of_host(asked, resources.names) or await _answer(request, resources, detailed=detailed)
            await send(stream, http, answer, with_body=request.method != b"HEAD")
            if not isinstance(answer.body, AsyncIterator):  # which has read what the client sent meanwhile
                await _linger(stream)


async def _receive_request(stream: trio.SocketStream, http: h11.Connection) -> h11.Request | None:
    """The head of a request, or None if the client left before it was complete."""
    while True:
        event = http.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        http.receive_data(bytes(await stream.receive_some(_CHUNK)))


def _headers(request: h11.Request) -> dict[bytes, str]:
    return {name: value.decode("latin-1") for name, value in request.headers}


def _asked(request: h11.Request, stream: trio.SocketStream) -> Asked:
    return Asked(
        path_of(request.target),
        _headers(request),
        authority=authority_of(request.target),
        port=stream.socket.getsockname()[1],
        from_here=is_loopback(str(stream.socket.getpeername()[0])),
    )


async def _answer(request: h11.Request, resources: _Resources, *, detailed: bool) -> Answer:
    headers = _headers(request)
    if headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers:
        return Answer(413, b"A request here has no body.\n")
    path = path_of(request.target)
    refused = refusal(request.method.decode("ascii"), path, resources.paths)
    if refused is not None:
        return refused
    try:
        answer = await resources.answer(path, query_of(request.target), headers.get(b"accept", ""), detailed=detailed)
    except Exception:
        # An error in a page or a collector fails this request alone; the log has the traceback.
        log.exception("admin resource failed", path=path)
        return Answer(500, b"This failed; the log says why.\n")
    return not_modified(answer, headers.get(b"if-none-match", ""))


async def _linger(stream: trio.SocketStream) -> None:
    """Read what the client still sends: closing with unread octets would reset the connection and lose the answer."""
    with trio.move_on_after(LINGER_SECONDS):
        for _ in range(MAXIMUM_HEAD // _CHUNK):
            if not await stream.receive_some(_CHUNK):
                return
