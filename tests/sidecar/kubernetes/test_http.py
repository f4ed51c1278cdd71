"""The client and the bodies of body.py on real sockets: credentials that rotate, and connections that fail."""

from __future__ import annotations

import gc
import gzip
import socket
import struct
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx2
import pytest
import trio

from sidecar.kubernetes.cluster import Cluster, ClusterConfigError, Tls
from sidecar.kubernetes.config import load_in_cluster
from sidecar.kubernetes.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Refused,
    ServerTrouble,
    TimedOut,
    Unauthorized,
)
from sidecar.kubernetes.http import ApiClient
from tests.kit.faulty_api import (
    AUTHORITY,
    SILENCE,
    Answer,
    FaultyApi,
    client_in_memory,
    cluster_at,
    event,
    failure,
    page,
    thing,
    watch,
)
from tests.kit.manifest_api import respond

PATH = "/apis/example.org/v1/things"


@asynccontextmanager
async def listening(handler: Callable[[trio.SocketStream], Awaitable[None]]) -> AsyncIterator[str]:
    """The URL of a server on a free port."""
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def read_head(stream: trio.SocketStream) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        head += await stream.receive_some()


async def read_and_fail(client: ApiClient) -> None:
    async with client.stream(PATH, seconds=10) as chunks:
        async for _ in chunks:
            raise ZeroDivisionError


async def say_nothing(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await trio.sleep_forever()


async def say_half(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items": ')
    await trio.sleep_forever()


async def close_at_once(stream: trio.SocketStream) -> None:
    await read_head(stream)


async def reset(stream: trio.SocketStream) -> None:
    await read_head(stream)
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def say_garbage(stream: trio.SocketStream) -> None:
    await read_head(stream)
    await stream.send_all(b"\x16\x03\x01\x02\x00 SSH-2.0-nonsense\r\n\r\n")


@pytest.mark.parametrize("silence", [say_nothing, say_half], ids=["before-the-head", "within-the-body"])
async def test_silence_without_fin_is_noticed(silence: Callable[[trio.SocketStream], Awaitable[None]]) -> None:
    """The deadline of the request is enough; nobody has to close anything."""
    async with listening(silence) as url, ApiClient(cluster_at(url)) as client:
        with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
            await client.get(PATH, seconds=0.2)


@pytest.mark.parametrize("fault", [close_at_once, reset, say_garbage], ids=["fin", "rst", "no-http"])
async def test_broken_connection_is_the_servers_trouble(
    fault: Callable[[trio.SocketStream], Awaitable[None]],
) -> None:
    """However it broke, the message says something."""
    async with listening(fault) as url, ApiClient(cluster_at(url)) as client:
        with pytest.raises(ServerTrouble, match=r"\w"):
            await client.get(PATH, seconds=10)


async def test_a_body_that_is_left_in_the_middle_leaves_nothing_to_the_garbage_collector() -> None:
    """Whoever reads a watch may be cancelled, or fail, at work on a part of it as well as waiting for one."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        async with listening(say_half) as url, ApiClient(cluster_at(url)) as client:
            with pytest.raises(ZeroDivisionError):
                await read_and_fail(client)
        gc.collect()
        await trio.lowlevel.checkpoint()
    assert [str(one.message) for one in warned] == []


async def test_refused_connection_names_the_address() -> None:
    """As every person who is to mend it needs to know."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with ApiClient(cluster_at(f"http://127.0.0.1:{port}")) as client:
            with pytest.raises(ServerTrouble, match=str(port)):
                await client.get(PATH, seconds=10)


async def test_rotated_token_file_is_read_for_the_next_request(tmp_path: Path) -> None:
    """The kubelet replaces the file; nobody tells us."""
    write_service_account(tmp_path, token="first\n")
    environment = {"KUBERNETES_SERVICE_HOST": "api.example.org", "KUBERNETES_SERVICE_PORT": "6443"}
    inside = load_in_cluster(environment=environment, service_account=tmp_path)
    cluster = Cluster("http://api.example.org", "test", inside.read_authorization, inside.reload)
    api = FaultyApi([page(thing("a"))], token="first")
    async with client_in_memory(api, cluster) as client:
        await client.get(PATH, seconds=10)
        api.token = "second"
        write_service_account(tmp_path, token="second")
        await client.get(PATH, seconds=10)
    assert [one.headers["authorization"] for one in api.asked] == ["Bearer first", "Bearer second"]


async def test_refused_credentials_are_read_again_once() -> None:
    """A 401 is followed by one new reading and one new try, whatever kind of credentials they are."""
    renewed = cluster_at("http://api.example.org", bearer="second")
    cluster = Cluster(renewed.server, "test", lambda: "Bearer first", lambda: renewed)
    api = FaultyApi([page(thing("a"))], token="second")
    async with client_in_memory(api, cluster) as client:
        await client.get(PATH, seconds=10)
        assert client.cluster is renewed
        api.token = "third"
        with pytest.raises(Unauthorized):
            await client.get(PATH, seconds=10)
    assert len(api.asked) == 4


async def test_many_refused_requests_read_the_credentials_once() -> None:
    """A plugin is not run once for each watch."""
    readings: list[None] = []
    renewed = cluster_at("http://api.example.org", bearer="second")

    def reload() -> Cluster:
        readings.append(None)
        return renewed

    api = FaultyApi([page(thing("a"))], token="second")
    cluster = Cluster(renewed.server, "test", lambda: "Bearer first", reload)
    async with client_in_memory(api, cluster) as client, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(partial(client.get, PATH, seconds=10))
    assert len(readings) == 1


async def test_changed_certificates_open_new_connections() -> None:
    """What still hangs on an old one is told so, and tries again."""
    api = FaultyApi([page(thing("a"))], [watch(event("ADDED", thing("b")), SILENCE)])
    async with listening(api.serve) as url:
        renewed = replace(cluster_at(url, bearer="second"), tls=Tls(server_name="api.example.org"))
        cluster = Cluster(url, "test", lambda: "Bearer first", lambda: renewed)
        async with ApiClient(cluster) as client:

            async def hang() -> None:
                async with client.stream(PATH, {"watch": "true"}, seconds=10) as chunks:
                    assert b"ADDED" in await anext(chunks)
                    api.token = "second"
                    await client.get(PATH, seconds=10)
                    await anext(chunks)

            with pytest.raises(ServerTrouble, match=r"\w"):
                await hang()
            await client.get(PATH, seconds=10)
            assert client.cluster is renewed


@pytest.mark.parametrize("blocks", [False, True])
async def test_credentials_that_cannot_be_read_any_more_are_unauthorized(blocks: bool) -> None:
    """At run time that is trouble like any other, not the end of the program."""

    def fail() -> str:
        raise ClusterConfigError("token: No such file or directory")

    cluster = Cluster("http://api.example.org", "test", fail, lambda: cluster, blocks=blocks)
    async with client_in_memory(FaultyApi([page()]), cluster) as client:
        with pytest.raises(Unauthorized, match="No such file"):
            await client.get(PATH, seconds=10)


async def test_proxy_of_the_environment_is_not_for_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY is about the world outside; the API server is inside."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    api = FaultyApi([page(thing("a"))])
    async with listening(api.serve) as url, ApiClient(cluster_at(url)) as client:
        await client.get(PATH, seconds=10)
    assert len(api.asked) == 1


async def change(api: httpx2.MockTransport) -> bytes:
    async with ApiClient(cluster_at("http://api.example.org"), transport=api) as client:
        return await client.change(
            "PATCH", PATH, {"fieldManager": "x"}, b"{}", content_type="application/merge-patch+json", seconds=10
        )


async def test_a_change_is_sent_once_with_its_method_type_and_body() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return respond(201, b"made")

    assert await change(httpx2.MockTransport(answer)) == b"made"
    (request,) = seen
    assert (request.method, request.url.path, request.url.params["fieldManager"]) == ("PATCH", PATH, "x")
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert request.content == b"{}"


@pytest.mark.parametrize(("status", "kind"), [(409, Conflict), (403, Forbidden), (422, Refused), (503, ServerTrouble)])
async def test_a_change_that_is_not_made_is_an_error_and_not_tried_again(status: int, kind: type[ApiError]) -> None:
    asked = 0

    def answer(_: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return respond(status, b'{"message": "no"}')

    with pytest.raises(kind, match="no"):
        await change(httpx2.MockTransport(answer))
    assert asked == 1


def write_service_account(folder: Path, *, token: str) -> None:
    (folder / "token").write_text(token)
    (folder / "namespace").write_text("switchback\n")
    (folder / "ca.crt").write_text(AUTHORITY)


GZIP = {"content-encoding": "gzip"}
WHOLE = gzip.compress(b'{"items": []}')


async def test_a_body_may_come_compressed_and_a_watch_may_not() -> None:
    """A list is asked for so; in whatever pieces it comes."""
    octets = b"x" * 100_000
    squeezed = gzip.compress(octets)
    pieces = [squeezed[start : start + 7] for start in range(0, len(squeezed), 7)]
    api = FaultyApi([Answer(pieces, headers=GZIP), Answer([octets])], [watch(b"plain")])
    async with client_in_memory(api) as client:
        assert await client.get(PATH, seconds=5) == octets
        assert await client.get(PATH, seconds=5) == octets
        async with client.stream(PATH, {"watch": "true"}, seconds=5) as chunks:
            assert [chunk async for chunk in chunks] == [b"plain"]
    assert [one.headers["accept-encoding"] for one in api.asked] == ["gzip", "gzip", "identity"]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(GZIP, b"<html>", id="not compressed at all"),
        pytest.param(GZIP, WHOLE[:-12] + b"\0" * 12, id="damaged"),
        pytest.param(GZIP, WHOLE[:-3], id="cut"),
        pytest.param(GZIP, b"", id="nothing at all"),
        pytest.param({"content-encoding": "gzip, gzip"}, WHOLE, id="compressed once less than said"),
        pytest.param({"content-encoding": "br"}, WHOLE, id="in a way that nobody asked for"),
    ],
)
async def test_a_body_that_cannot_be_inflated_is_the_servers_trouble(headers: dict[str, str], body: bytes) -> None:
    async with client_in_memory(FaultyApi([Answer([body], headers=headers)])) as client:
        with pytest.raises(ServerTrouble):
            await client.get(PATH, seconds=5)


async def test_an_error_that_comes_compressed_is_read() -> None:
    """A proxy may compress its own page."""
    (body,) = failure(403, "Forbidden").parts  # type: ignore[misc]
    api = FaultyApi([Answer([gzip.compress(bytes(body))], 403, GZIP)])  # type: ignore[arg-type]
    async with client_in_memory(api) as client:
        with pytest.raises(Forbidden, match="403: so it goes"):
            await client.get(PATH, seconds=5)


def test_a_client_that_is_opened_imports_nothing() -> None:
    """It is opened when queries are answered already, and they would wait for it."""
    script = (
        "import sys; from sidecar.kubernetes.cluster import Cluster; from sidecar.kubernetes.http import ApiClient;"
        "before = set(sys.modules); ApiClient(Cluster('https://192.0.2.1', '', lambda: None, None))._open();"
        "print(sorted(set(sys.modules) - before))"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


async def test_a_long_header_that_is_none_is_not_repeated_whole() -> None:
    async def say_much(stream: trio.SocketStream) -> None:
        await read_head(stream)
        await stream.send_all(b"HTTP/1.1 200 OK\r\n" + b"\x01" * 60_000 + b"\r\n\r\n")

    async with listening(say_much) as url, ApiClient(cluster_at(url)) as client:
        with pytest.raises(ServerTrouble, match="illegal header") as error:
            await client.get(PATH, seconds=10)
    assert len(str(error.value)) < 500
