"""Watching a live answer: what ends it, and with which status."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest
import trio

from sidecar.admin.watching import watch
from sidecar.values.errors import StartError
from sidecar.values.tally import Tally
from tests.sidecar.admin.test_asking import Handler, listening, saying
from tests.sidecar.admin.test_following import CHUNKED, END, chunk


def understand(line: bytes) -> bool:
    if line == b"nonsense":
        raise ValueError("no JSON")
    return line != b"note"


def then_silent(*parts: bytes) -> Handler:
    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        for part in parts:
            await stream.send_all(part)
        await trio.sleep_forever()

    return handle


watching = partial(watch, program="proxy", show=understand)


@pytest.mark.parametrize(
    ("handler", "count", "seconds", "status"),
    [
        pytest.param(saying(CHUNKED + END), None, None, 1, id="an end without a line"),
        pytest.param(saying(CHUNKED + chunk(b"one\n") + END), None, None, 0, id="an end after a line"),
        pytest.param(saying(CHUNKED + chunk(b"note\n") + END), None, None, 1, id="a note does not count"),
        pytest.param(saying(CHUNKED + chunk(b"one\n") + END), 2, None, 1, id="an end after too few"),
        pytest.param(then_silent(CHUNKED, chunk(b"one\nnote\ntwo\nthree\n")), 2, None, 0, id="enough"),
        pytest.param(then_silent(CHUNKED), None, 0.2, 1, id="a time without a line"),
        pytest.param(then_silent(CHUNKED + chunk(b"one\n")), None, 0.2, 0, id="a time with a line"),
        pytest.param(then_silent(CHUNKED + chunk(b"one\n")), 2, 0.2, 1, id="a time with too few"),
    ],
)
async def test_the_status_says_whether_enough_was_seen(
    handler: Handler, count: int | None, seconds: float | None, status: int
) -> None:
    async with listening(handler) as endpoint:
        assert await watching(endpoint, "/tap", tally=Tally(count), seconds=seconds) == status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("count", "status"), [(None, 0), (5, 1)])
async def test_a_signal_ends_it_with_the_status_of_what_was_seen(
    number: signal.Signals, count: int | None, status: int
) -> None:
    def show(line: bytes) -> bool:
        os.kill(os.getpid(), number)
        return understand(line)

    async with listening(then_silent(CHUNKED, chunk(b"one\n"))) as endpoint:
        assert await watch(endpoint, "/tap", program="proxy", show=show, tally=Tally(count)) == status


@pytest.mark.parametrize(
    ("handler", "complaint"),
    [
        pytest.param(saying(), "is not complete HTTP", id="no answer"),
        pytest.param(saying(CHUNKED + chunk(b"one\n")), "is not complete HTTP", id="a server that is lost"),
        pytest.param(
            saying(CHUNKED + chunk(b"nonsense\n") + END), "not one of this version's `proxy` (no JSON)", id="nonsense"
        ),
        pytest.param(
            saying(b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n--tap off"), "answers 403: --tap off", id="forbidden"
        ),
    ],
)
async def test_a_server_that_cannot_be_asked_is_an_error_with_its_status(handler: Handler, complaint: str) -> None:
    async with listening(handler) as endpoint:
        with pytest.RaisesGroup(StartError, allow_unwrapped=True, flatten_subgroups=True) as caught:
            await watching(endpoint, "/tap", tally=Tally())
    error = caught.value.exceptions[0] if isinstance(caught.value, ExceptionGroup) else caught.value
    assert str(error).startswith(f"--admin {endpoint}: ")
    assert complaint in str(error)
    assert getattr(error, "status", None) == 3
