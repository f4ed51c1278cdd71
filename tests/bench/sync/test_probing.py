from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.bench.sync.answered import ask_until_answered
from tests.bench.sync.probing import wait_for_answer
from tests.kit.messages import query, record, reply_to

QUERY = query("app.example.org")
ANSWER = reply_to(QUERY, records=record(1, bytes(4)), answers=1)
SERVFAIL = reply_to(QUERY, flags=0x8182)


@contextmanager
def replying(*replies: bytes | None) -> Iterator[tuple[int, Callable[[], int]]]:
    """A server that gives these replies in turn and then none; its port, and how many queries it had."""
    had = 0

    def serve() -> None:
        nonlocal had
        left = iter(replies)
        while True:
            message, client = server.recvfrom(512)
            if not message:
                return
            had += 1
            reply = next(left, None)
            if reply is not None:
                server.sendto(message[:2] + reply[2:], client)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], lambda: had
        finally:
            # An empty datagram is no query: it ends the thread.
            server.sendto(b"", server.getsockname())
            thread.join()


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param([ANSWER], id="at once"),
        pytest.param([None, None, ANSWER], id="after silence"),
        pytest.param([SERVFAIL, ANSWER], id="after a refusal"),
        pytest.param([reply_to(QUERY), ANSWER], id="after no data"),
    ],
)
def test_the_first_answer_is_waited_for(replies: list[bytes | None]) -> None:
    with replying(*replies) as (port, had):
        assert wait_for_answer(port, QUERY)
        assert had() >= len(replies)
    with replying(*replies) as (port, had):
        ask_until_answered(port, "app.example.org", until=float("inf"))
        assert had() >= len(replies)


def test_a_server_that_is_not_there_is_waited_for_as_long_as_there_is_patience() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    assert not wait_for_answer(port, QUERY, patience=0.05)


def test_what_never_answers_is_given_up() -> None:
    with replying(SERVFAIL) as (port, _):
        assert not wait_for_answer(port, QUERY, patience=0.05)
        ask_until_answered(port, "app.example.org", until=0.0)
