"""What `GET /tap` answers: lines, an error for a bad filter, or why there is nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import trio.testing

from proxy.admin.tap_route import tap_route
from proxy.tap.ended import parse_json
from proxy.tap.tap import Tap
from sidecar.admin.answers import Answer
from tests.proxy.tap.test_ended import event


def answer_to(tap: Tap | None, **query: str) -> Answer:
    answer = tap_route(tap)["/tap"](query)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("tap", "query", "status", "text"),
    [
        pytest.param(None, {}, 403, b"--tap off", id="off"),
        pytest.param(None, {"client": "x"}, 403, b"--tap off", id="off, whatever is asked"),
        pytest.param(Tap(), {"client": "x"}, 400, b"is not an address or network", id="a bad client"),
        pytest.param(Tap(), {"x": ""}, 400, b"is not a field", id="no such field"),
    ],
)
def test_what_cannot_be_shown_is_an_error_with_the_reason(
    tap: Tap | None, query: dict[str, str], status: int, text: bytes
) -> None:
    answer = answer_to(tap, **query)
    assert answer.status == status
    assert isinstance(answer.body, bytes)
    assert text in answer.body
    assert tap is None or not tap.listening


async def test_a_listener_lasts_as_long_as_its_answer(autojump_clock: trio.testing.MockClock) -> None:
    begun = autojump_clock.current_time()
    tap = Tap()
    answer = answer_to(tap, client="192.0.2.7")
    assert not tap.listening
    body = answer.body
    assert isinstance(body, AsyncGenerator)
    assert await anext(body) == b"\n"
    assert autojump_clock.current_time() - begun == pytest.approx(5, abs=0.5)
    assert tap.listening
    tap.note(event(client="198.51.100.1"))
    tap.note(event())
    assert parse_json(await anext(body)) == event()
    await body.aclose()
    assert not tap.listening
