"""Following a live answer: whatever listens there, the result is lines, their end, or an error of one line."""

from __future__ import annotations

import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from sidecar.admin import following
from sidecar.admin.answers import NDJSON, Answer
from sidecar.admin.asking import NoAnswer
from sidecar.admin.following import follow
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint
from tests.sidecar.admin.test_asking import (
    OK,
    Handler,
    drip,
    listening,
    reset,
    say_heads_without_end,
    say_nothing,
    saying,
)

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(octets: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(octets), octets)


async def lines_of(endpoint: Endpoint) -> list[bytes]:
    async with aclosing(follow(endpoint, "/tap?x=1", program="proxy")) as lines:
        return [line async for line in lines]


async def test_the_caller_learns_of_the_answer_once_and_of_an_error_not_at_all() -> None:
    answered: list[bool] = []
    for said in (CHUNKED + END, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"):
        async with listening(saying(said)) as endpoint:
            with suppress(NoAnswer):
                lines = follow(endpoint, "/tap", program="proxy", on_answer=lambda: answered.append(True))
                async with aclosing(lines):
                    assert [line async for line in lines] == []
    assert answered == [True]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([CHUNKED + chunk(b"one\ntwo\n") + END], id="at once"),
        pytest.param([CHUNKED, chunk(b"one\n"), chunk(b"\n"), chunk(b"two\n"), END], id="with an empty line"),
        pytest.param([CHUNKED, chunk(b"o"), chunk(b"ne\nt"), chunk(b"wo\n"), END], id="in other pieces"),
        pytest.param([CHUNKED, chunk(b"one\ntwo"), END], id="without a last end of line"),
        pytest.param([bytes([one]) for one in CHUNKED + chunk(b"one\ntwo\n") + END], id="octet by octet"),
        pytest.param([b"HTTP/1.1 103 Early Hints\r\n\r\n" + CHUNKED + chunk(b"one\ntwo\n") + END], id="after a hint"),
    ],
)
async def test_an_answer_is_its_lines(parts: list[bytes]) -> None:
    async with listening(saying(*parts)) as endpoint:
        assert await lines_of(endpoint) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("handler", "complaint"),
    [
        pytest.param(saying(), "the answer is not complete HTTP", id="closed at once"),
        pytest.param(reset, "the answer is not complete HTTP", id="reset"),
        pytest.param(saying(b"SSH-2.0-OpenSSH\r\n"), "the answer is not complete HTTP", id="another protocol"),
        pytest.param(saying(CHUNKED + chunk(b"one\n")), "the answer is not complete HTTP", id="cut after a line"),
        pytest.param(saying(CHUNKED + b"5\r\non"), "the answer is not complete HTTP", id="cut in a line"),
        pytest.param(saying(CHUNKED + b"no number\r\n"), "the answer is not complete HTTP", id="chunks that are none"),
        pytest.param(saying(CHUNKED + chunk(b"x" * 65_537)), "a line is longer than 64 KiB", id="a line without end"),
        pytest.param(saying(CHUNKED + chunk(b"x" * 65_537 + b"\n")), "a line is longer than 64 KiB", id="a long line"),
        pytest.param(drip, "is longer than 64 KiB", id="a drop at a time"),
        pytest.param(say_nothing, "no answer within 0.3 s", id="silence"),
        pytest.param(say_heads_without_end, "no answer within 0.3 s", id="heads without end"),
        pytest.param(
            saying(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            "the server there has no /tap; it is no `proxy`",
            id="404",
        ),
        pytest.param(
            saying(b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n--tap off"), "answers 403: --tap off", id="403"
        ),
        pytest.param(
            saying(b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n\x1b[2Jbroke"), r"answers 500: \x1b[2Jbroke", id="500"
        ),
        pytest.param(saying(b"HTTP/1.1 204 None\r\n\r\n"), "answers 204", id="no content"),
    ],
)
async def test_anything_else_is_an_error_of_one_line(
    handler: Handler, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if handler in (say_nothing, say_heads_without_end):
        monkeypatch.setattr(following, "SILENCE_SECONDS", 0.3)
    if handler is drip:
        monkeypatch.setattr(following, "LONGEST_LINE", 100)
        complaint = "a line is longer"
    async with listening(handler) as endpoint:
        with pytest.raises(NoAnswer) as caught:
            await lines_of(endpoint)
    assert complaint in str(caught.value)
    assert str(caught.value).isprintable()


async def test_a_port_without_a_server_says_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(NoAnswer, match=r"Connection refused.*`proxy`.*--admin"):
            await lines_of(Endpoint("127.0.0.1", unused.getsockname()[1]))


async def test_a_server_that_falls_silent_between_lines_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stall(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(CHUNKED + chunk(b"one\n"))
        await trio.sleep_forever()

    monkeypatch.setattr(following, "SILENCE_SECONDS", 0.3)
    async with listening(stall) as endpoint, aclosing(follow(endpoint, "/tap", program="proxy")) as lines:
        assert await anext(lines) == b"one"
        with pytest.raises(NoAnswer, match=r"silent for 0\.3 s"):
            await anext(lines)


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line), max_size=5), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    async def check() -> None:
        octets = b"".join(line + b"\n" for line in lines)
        cuts = sorted(data.draw(st.sets(st.integers(0, len(octets)), max_size=4)) | {0, len(octets)})
        pieces = [octets[begin:end] for begin, end in itertools.pairwise(cuts)]
        async with listening(saying(CHUNKED, *map(chunk, filter(None, pieces)), END)) as endpoint:
            assert await lines_of(endpoint) == lines

    trio.run(check)


async def test_the_real_server_and_the_client_understand_each_other() -> None:
    async def count() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d\n\n" % number

    listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: serve_admin(
                [listener],
                readiness=lambda: Readiness(ready=True, reason="ready"),
                registry=CollectorRegistry(),
                page=lambda: "",
                routes={"/tap": lambda _: Answer(200, count(), NDJSON)},
            )
        )
        assert await lines_of(bound_endpoint(listener)) == [b"0", b"1", b"2"]
        nursery.cancel_scope.cancel()
