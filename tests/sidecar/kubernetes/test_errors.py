"""From responses to errors with a cause."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Refused,
    ServerTrouble,
    TooManyRequests,
    Unauthorized,
    error_from_response,
    shown,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (302, Refused),
        (400, Refused),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, Refused),
        (409, Conflict),
        (410, Gone),
        (429, TooManyRequests),
        (500, ServerTrouble),
        (503, ServerTrouble),
        (504, ServerTrouble),
    ],
)
def test_code_decides(code: int, kind: type[ApiError]) -> None:
    """With a Status, with another body, and with none."""
    for body in (json.dumps({"code": code, "message": "no"}).encode(), b"<html>no</html>", b""):
        assert type(error_from_response(code, body)) is kind


@given(st.integers(100, 999), st.binary(), st.none() | st.text())
def test_any_response_is_an_error_on_one_line(code: int, body: bytes, retry_after: str | None) -> None:
    """Safe in a log and on a terminal, and with a cause from a small set."""
    error = error_from_response(code, body, retry_after=retry_after)
    assert str(error).isprintable()
    assert error.cause in {kind.cause for kind in ALL}
    assert error.retry_after is None or error.retry_after >= 0


ALL = (Conflict, Forbidden, Gone, NotFound, Refused, ServerTrouble, TooManyRequests, Unauthorized)


def test_retry_after_in_the_header_goes_before_that_in_the_body() -> None:
    """The header is what proxies set."""
    body = json.dumps({"code": 429, "details": {"retryAfterSeconds": 3}}).encode()
    assert error_from_response(429, body).retry_after == 3
    assert error_from_response(429, body, retry_after="5").retry_after == 5
    assert error_from_response(429, b"", retry_after="0\x1f").retry_after is None
    assert error_from_response(429, b"", retry_after="Wed, 21 Oct 2015 07:28:00 GMT").retry_after is None


def test_shown_text_is_short_and_of_one_line() -> None:
    """Control characters are spelled out."""
    assert shown(b"a\n  b\x1b[31m\xff") == "a b\\x1b[31m\\ufffd"
    assert len(shown(b"x" * 10_000)) == 200
    assert shown(b" \n") == "an empty body"
