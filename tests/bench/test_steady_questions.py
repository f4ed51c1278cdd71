from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.steady_questions import Heard, ask_steadily
from tests.kit.messages import query

QUESTIONS = [query(f"h{number}.example.org") for number in range(10)]
PATIENCE = 8.0
"""Waited out where a reply is missing; every other reply must come within it, also if the machine stands still."""


@contextmanager
def echoing(copies: dict[int, int], *, of: int) -> Iterator[tuple[str, int]]:
    """A server that sends each of so many questions back as its reply: once, or as often as is said for its number."""

    def serve() -> None:
        for number in range(of):
            message, client = server.recvfrom(512)
            for _ in range(copies.get(number, 1)):
                server.sendto(message, client)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()
        thread.join()


def ask(copies: dict[int, int], *, patience: float = PATIENCE) -> dict[int, Heard]:
    with echoing(copies, of=len(QUESTIONS)) as server:
        heard = ask_steadily(server, QUESTIONS, rate=100, patience=patience)
    found = {one.number: one for one in heard}
    assert len(found) == len(heard) == len(QUESTIONS)
    return found


def test_each_reply_is_told_by_its_question_whose_id_alone_was_changed() -> None:
    for number, one in ask({}).items():
        assert one.reply == number.to_bytes(2, "big") + QUESTIONS[number][2:]
        assert 0 < one.seconds < PATIENCE


def test_a_question_without_a_reply_took_all_the_patience() -> None:
    heard = ask({3: 0})
    assert (heard[3].reply, heard[3].seconds) == (None, PATIENCE)
    assert all(heard[number].reply for number in heard.keys() - {3})


def test_a_second_reply_is_not_heard() -> None:
    assert all(one.reply for one in ask({4: 2}).values())


def test_questions_go_out_on_the_clock_and_in_their_order() -> None:
    before = time.monotonic()
    heard = ask({0: 0, 1: 0}, patience=0.1)
    times = [heard[number].at for number in sorted(heard)]
    assert times == sorted(times)
    # Never early. A busy machine may delay any of them, so the time between two of them says nothing.
    assert all(at - before >= number / 100 for number, at in enumerate(times))
