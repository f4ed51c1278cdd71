"""An API server with faults that a real one cannot be made to have: scripted HTTP/1.1 over any trio stream.

Lists, checks (lists of one object) and watches have one script each: one response per request; the last one repeats. A
check without a script finds that no version was lost. A body consists of parts, each sent in one write: octets, a float
(seconds to wait), SILENCE (nothing more, no FIN) or CUT (the connection breaks).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11
import httpcore2
import httpx2
import trio
import trio.testing

from sidecar.kubernetes.cluster import Cluster
from sidecar.kubernetes.http import ApiClient

AUTHORITY = (Path(__file__).parent / "ca.crt").read_text(encoding="utf-8")
"""The certificate of the authority, in PEM."""


class End(Enum):
    SILENCE = auto()
    CUT = auto()


SILENCE, CUT = End.SILENCE, End.CUT

Part = bytes | float | End


@dataclass(frozen=True)
class Answer:
    parts: Sequence[Part] | AsyncGenerator[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A request as the server received it."""

    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    time: float

    @property
    def is_watch(self) -> bool:
        return self.params.get("watch") == "true"

    @property
    def is_check(self) -> bool:
        return self.params.get("limit") == "1"


@dataclass
class FaultyApi:
    lists: Sequence[Answer]
    watches: Sequence[Answer] = (Answer((SILENCE,)),)
    token: str | None = None
    """If it is set, the only token that is accepted."""
    down: bool = False
    """Whether connections are refused."""
    checks: Sequence[Answer] = ()
    asked: list[Asked] = field(default_factory=list)

    @property
    def listed(self) -> list[Asked]:
        return [one for one in self.asked if not one.is_watch and not one.is_check]

    @property
    def checked(self) -> list[Asked]:
        return [one for one in self.asked if one.is_check]

    @property
    def watched(self) -> list[Asked]:
        return [one for one in self.asked if one.is_watch]

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection until it ends."""
        connection = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while await self._serve_request(connection, stream):
                    connection.start_next_cycle()
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            pass  # the client has closed the connection

    async def _serve_request(self, connection: h11.Connection, stream: trio.abc.Stream) -> bool:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some()))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.ConnectionClosed):
                return False
        return await self._send(self._answer(request), connection, stream)

    def _answer(self, request: h11.Request) -> Answer:
        url = urlsplit(request.target.decode())
        headers = {name.decode(): value.decode() for name, value in request.headers}
        self.asked.append(Asked(url.path, dict(parse_qsl(url.query)), headers, trio.current_time()))
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return failure(401, "Unauthorized")
        script, asked = self.lists, self.listed
        if self.asked[-1].is_watch:
            script, asked = self.watches, self.watched
        elif self.asked[-1].is_check:
            script, asked = self.checks or (page(version="999999999"),), self.checked
        return script[min(len(asked), len(script)) - 1]

    async def _send(self, answer: Answer, connection: h11.Connection, stream: trio.abc.Stream) -> bool:
        headers = {"content-type": "application/json", "transfer-encoding": "chunked"} | dict(answer.headers)
        response = h11.Response(status_code=answer.status, headers=list(headers.items()))
        await stream.send_all(connection.send(response) or b"")
        async with aclosing(_each(answer.parts)) as parts:
            async for part in parts:
                match part:
                    case bytes():
                        await stream.send_all(connection.send(h11.Data(part)) or b"")
                    case End.SILENCE:
                        await trio.sleep_forever()
                    case End.CUT:
                        return False
                    case _:
                        await trio.sleep(part)
        await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
        return True


async def _each(parts: Sequence[Part] | AsyncGenerator[Part]) -> AsyncGenerator[Part]:
    if isinstance(parts, Sequence):
        for part in parts:
            yield part
        return
    async with aclosing(parts):
        async for part in parts:
            yield part


def thing(name: str, version: str = "1", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "resourceVersion": version}
    return {"metadata": metadata, "spec": spec}


def page(*objects: Mapping[str, Any] | None, version: str = "10", token: str = "", **changes: Any) -> Answer:
    """One chunk of a list."""
    metadata = {"resourceVersion": version, "continue": token}
    return Answer([json.dumps({"metadata": metadata, "items": list(objects)} | changes).encode()])


def watch(*parts: Part) -> Answer:
    """A watch that sends these events and then ends."""
    return Answer(parts)


def event(kind: str, item: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": version, "creationTimestamp": None}})


def status_object(code: int, reason: str, message: str = "so it goes") -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def failure(code: int, reason: str, **headers: str) -> Answer:
    body = json.dumps(status_object(code, reason)).encode()
    return Answer([body], code, {name.replace("_", "-"): value for name, value in headers.items()})


def cluster_at(server: str, *, bearer: str = "first") -> Cluster:
    cluster = Cluster(server, "the test", lambda: f"Bearer {bearer}", lambda: cluster)
    return cluster


@asynccontextmanager
async def client_in_memory(api: FaultyApi, cluster: Cluster | None = None) -> AsyncIterator[ApiClient]:
    """A client that connects to the server over memory streams: under a mock clock no test waits."""
    async with trio.open_nursery() as nursery:
        transport = httpx2.AsyncHTTPTransport(trust_env=False)
        # As many connections as the client's own pool has: one for each watch.
        transport._pool = httpcore2.AsyncConnectionPool(
            network_backend=_MemoryBackend(api, nursery), max_connections=None
        )
        async with ApiClient(cluster or cluster_at("http://api.example.org"), transport=transport) as client:
            yield client
        nursery.cancel_scope.cancel()


class _MemoryBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, api: FaultyApi, nursery: trio.Nursery) -> None:
        self._api = api
        self._nursery = nursery

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        await trio.lowlevel.checkpoint()
        if self._api.down:
            raise httpcore2.ConnectError("connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._api.serve, theirs)
        return _MemoryStream(ours)


class _MemoryStream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        try:
            return bytes(await self._stream.receive_some(max_bytes))
        except trio.BrokenResourceError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        try:
            await self._stream.send_all(buffer)
        except trio.BrokenResourceError as error:
            raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002
        return None


def names(objects: Iterable[str]) -> set[str]:
    return {key.removeprefix("default/") for key in objects}
