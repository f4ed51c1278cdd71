"""Asking an admin port: whatever listens there, the result is an answer or an error of one line."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from sidecar.admin import asking
from sidecar.admin.asking import NoAnswer, Reply
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

ask = partial(asking.ask, program="dnsproxy serve")
get = partial(asking.get, program="dnsproxy serve")

Handler = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[Endpoint]:
    async def handle(stream: trio.SocketStream) -> None:
        # The client may have had enough.
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await handler(stream)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        yield Endpoint("127.0.0.1", listener.socket.getsockname()[1])
        nursery.cancel_scope.cancel()


def saying(*parts: bytes) -> Handler:
    """Reads a request, says this and closes."""

    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        for part in parts:
            await stream.send_all(part)

    return handle


async def say_without_end(stream: trio.SocketStream) -> None:
    await stream.receive_some(65_536)
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while True:
        await stream.send_all(b"x" * 1_000_000)


async def say_heads_without_end(stream: trio.SocketStream) -> None:
    await stream.receive_some(65_536)
    while True:
        await stream.send_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")


async def say_nothing(_: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def drip(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b"x")
        await trio.sleep(0.001)


NEVER_WHOLE = (say_nothing, drip, say_heads_without_end)


async def reset(stream: trio.SocketStream) -> None:
    await stream.receive_some(1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([OK + b"Content-Length: 5\r\n\r\nwhole"], id="with a length"),
        pytest.param([OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nwh\r\n", b"3\r\nole\r\n0\r\n\r\n"], id="in chunks"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\n", b"who", b"le"], id="to the end of the connection"),
        pytest.param([bytes([octet]) for octet in OK + b"Content-Length: 5\r\n\r\nwhole"], id="octet by octet"),
        pytest.param([b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nwhole"], id="after a hint"),
        pytest.param([OK + b"Content-Length: 5\r\n\r\nwhole and more"], id="with more behind it"),
    ],
)
async def test_a_whole_answer_is_its_body(parts: list[bytes]) -> None:
    async with listening(saying(*parts)) as endpoint:
        assert await ask(endpoint, "/table") == b"whole"


async def test_the_request_is_for_the_target_and_names_the_host() -> None:
    heard = bytearray()

    async def hear(stream: trio.SocketStream) -> None:
        heard.extend(await stream.receive_some(65_536))
        await stream.send_all(OK + b"Content-Length: 0\r\n\r\n")

    async with listening(hear) as endpoint:
        await ask(endpoint, "/explain?name=a%20b")
    assert heard.startswith(b"GET /explain?name=a%20b HTTP/1.1\r\n")
    assert f"Host: {endpoint}\r\n".encode() in heard


@pytest.mark.parametrize(
    ("parts", "reply"),
    [
        pytest.param(
            OK + b'ETag: W/"1"\r\nContent-Length: 5\r\n\r\nwhole', Reply(b"whole", 'W/"1"', modified=True), id="another"
        ),
        pytest.param(
            b'HTTP/1.1 304 Not Modified\r\nETag: W/"1"\r\n\r\n', Reply(b"", 'W/"1"', modified=False), id="the same"
        ),
        pytest.param(OK + b"Content-Length: 0\r\n\r\n", Reply(b"", "", modified=True), id="without a tag"),
    ],
)
async def test_an_answer_says_whether_it_is_another_than_the_one_that_is_known(parts: bytes, reply: Reply) -> None:
    async with listening(saying(parts)) as endpoint:
        assert await get(endpoint, "/names.json.gz", headers={"If-None-Match": 'W/"1"'}) == reply


async def test_nobody_has_what_was_never_sent() -> None:
    async with listening(saying(b"HTTP/1.1 304 Not Modified\r\n\r\n")) as endpoint:
        with pytest.raises(NoAnswer, match="answers 304"):
            await get(endpoint, "/table")


@pytest.mark.parametrize(
    ("handler", "complaint"),
    [
        pytest.param(saying(), "the answer is not complete HTTP", id="closed at once"),
        pytest.param(reset, "the answer is not complete HTTP", id="reset"),
        pytest.param(saying(b"SSH-2.0-OpenSSH\r\n"), "the answer is not complete HTTP", id="another protocol"),
        pytest.param(saying(b"\0" * 100_000), "the answer is not complete HTTP", id="garbage"),
        pytest.param(saying(OK + b"A: " + b"a" * 100_000), "the answer is not complete HTTP", id="a head without end"),
        pytest.param(saying(OK + b"Content-Length: 5\r\n\r\nwho"), "the answer is not complete HTTP", id="cut"),
        pytest.param(
            saying(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n"), "not complete HTTP", id="cut chunks"
        ),
        pytest.param(
            saying(OK + b"Content-Length: x\r\n\r\n"), "the answer is not complete HTTP", id="a length that is none"
        ),
        pytest.param(say_without_end, "the answer is larger than 1 MiB", id="a gigabyte"),
        pytest.param(say_nothing, "no complete answer within 0.3 s", id="silence"),
        pytest.param(drip, "no complete answer within 0.3 s", id="a drop at a time"),
        pytest.param(say_heads_without_end, "no complete answer within 0.3 s", id="heads without end"),
        pytest.param(
            saying(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "the server there has no /table;", id="404"
        ),
        pytest.param(
            saying(b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n\x1b[2Jbroke"), r"answers 500: \x1b[2Jbroke", id="500"
        ),
        pytest.param(
            saying(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), "answers 302", id="elsewhere"
        ),
    ],
)
async def test_anything_else_is_one_line_that_names_the_flag(
    handler: Handler, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others say something, which must arrive in time on a busy machine: a mebibyte, for one.
    if handler in NEVER_WHOLE:
        monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.3)
    async with listening(handler) as endpoint:
        with pytest.raises(StartError) as caught:
            await ask(endpoint, "/table?x=1", largest=1 << 20)
    message = str(caught.value)
    assert message.startswith(f"--admin {endpoint}: ")
    assert complaint in message
    assert message.isprintable()
    assert caught.value.status == 3


async def test_a_port_where_nobody_listens_says_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", unused.getsockname()[1])
        with pytest.raises(StartError, match=r"Connection refused.*`dnsproxy serve`.*--admin") as caught:
            await ask(endpoint, "/table")
    assert caught.value.status == 3


async def test_a_port_that_does_not_take_the_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "CONNECT_SECONDS", 0.1)
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        endpoint = Endpoint("127.0.0.1", full.getsockname()[1])
        # The queue of a listener that accepts nothing is full after a few; the next SYN gets no answer.
        for _ in range(4):
            one = sockets.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex((endpoint.host, endpoint.port))
        with pytest.raises(StartError, match=r"not within 0\.1 s"):
            await ask(endpoint, "/table")


async def test_a_line_of_garbage_is_not_repeated_whole() -> None:
    async with listening(saying(b"x" * 15_000 + b"\r\n\r\n")) as endpoint:
        with pytest.raises(NoAnswer, match="not complete HTTP") as error:
            await get(endpoint, "/table")
    assert len(str(error.value)) < 600
