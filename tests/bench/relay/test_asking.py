from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from tests.bench.relay.asking import HELD_UP, Answers, ask, judge, parse_answers

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@contextmanager
def serving(answer: bytes) -> Iterator[tuple[int, list[int]]]:
    """A server of HTTP by ear: its port, and how many requests each connection made so far."""
    counts: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                counts.append(0)
                with client:
                    while request := client.recv(65_536):
                        counts[-1] += 1
                        client.sendall(answer)
                        if b"Connection: close" in request:
                            break

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], counts
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("keep_alive", [True, False], ids=["keep-alive", "new"])
def test_every_request_is_timed_and_counted(keep_alive: bool) -> None:
    with serving(ANSWER) as (port, counts):
        answers = ask(port, 0.05, keep_alive=keep_alive, processes=[os.getpid()])
    assert answers.requests == sum(counts) > 0
    assert len(counts) == (1 if keep_alive else answers.requests)
    assert parse_answers(json.dumps(asdict(answers))) == answers


def test_what_is_no_answer_is_an_error_and_no_figure() -> None:
    with serving(b"HTTP/1.1 502 Bad Gateway\r\n\r\n") as (port, _), pytest.raises(OSError, match="502"):
        ask(port, 0.05, keep_alive=False, processes=[])


def test_a_request_that_waited_for_a_processor_is_left_out_and_counted() -> None:
    asked = [(0.001, 0.0), (0.002, 0.0), (0.9, HELD_UP), (0.003, HELD_UP / 2)]
    assert judge(asked, seconds=1.0) == Answers(4, 1, 1.0, 2.0, 3.0, 3.0)


def test_a_request_that_was_slow_without_that_counts() -> None:
    assert judge([(0.001, 0.0)] * 98 + [(0.2, 0.0)] * 2, seconds=1.0).p99_ms == pytest.approx(200.0)


def test_where_all_were_held_up_there_is_no_figure() -> None:
    assert judge([(0.001, 1.0)], seconds=1.0) == Answers(1, 1, 1.0, None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Connection refused", id="an error"),
        pytest.param('{"requests": 1}', id="figures missing"),
        pytest.param("[1]", id="no names"),
    ],
)
def test_anything_else_is_not_read_as_answers(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_answers(text)
