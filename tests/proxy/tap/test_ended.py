"""What a connection shows of its end, as JSON and as a line."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.health import Cause
from proxy.tap.ended import (
    Dropped,
    Ended,
    Ending,
    Outcome,
    describe,
    format_batch,
    format_json,
    format_line,
    parse_json,
)


def event(outcome: Outcome | None = None, **changes: Any) -> Ended:
    parts: dict[str, Any] = {
        "client": "192.0.2.7",
        "port": 40_000,
        "route": "[::]:8443",
        "ended": 1_700_000_000.1239,
        "seconds": 1.5,
    }
    return describe(outcome or Outcome(Ending.CLOSED, "", ("2001:db8::1", 443), 10, 20), **(parts | changes))


def test_the_json_object_has_these_keys_and_forms() -> None:
    assert json.loads(format_json(event())) == {
        "time": "2023-11-14T22:13:20.123Z",
        "client": "192.0.2.7",
        "port": 40_000,
        "route": "[::]:8443",
        "backend": "[2001:db8::1]:443",
        "bytes_in": 10,
        "bytes_out": 20,
        "seconds": 1.5,
        "end": "closed",
        "cause": "",
    }


@pytest.mark.parametrize("ending", Ending)
def test_every_end_is_read_again(ending: Ending) -> None:
    given_event = event(Outcome(ending, Cause.TIMEOUT if ending is Ending.NO_BACKEND else ""))
    assert parse_json(format_json(given_event)) == given_event
    assert format_json(given_event).count(b"\n") == 1


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        pytest.param(
            event(),
            "22:13:20.123  192.0.2.7:40000  [::]:8443 -> [2001:db8::1]:443  in 10 out 20  1.500 s  closed",
            id="whole",
        ),
        pytest.param(
            event(Outcome(Ending.NO_BACKEND, Cause.DNS_NXDOMAIN), client="2001:db8::7"),
            "22:13:20.123  [2001:db8::7]:40000  [::]:8443 -> -  in 0 out 0  1.500 s  no backend (dns-nxdomain)",
            id="without a backend",
        ),
        pytest.param(Dropped(3), "... 3 connections are not shown: there was no room for them", id="dropped"),
    ],
)
def test_a_line_for_people_has_the_same(shown: Ended | Dropped, line: str) -> None:
    assert format_line(shown) == line


def test_a_client_of_ipv4_is_shown_as_such_by_a_listener_on_every_address() -> None:
    assert event(client="::ffff:192.0.2.7").client == "192.0.2.7"
    assert event(client="::ffff:1").client == "::ffff:1"


def test_a_batch_begins_with_the_note_about_what_is_missing() -> None:
    lines = format_batch([event(), event()], 7).splitlines()
    assert [parse_json(line) for line in lines] == [Dropped(7), event(), event()]
    assert format_batch([], 0) == b""


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"no json",
        b'{"dropped"',
        b'{"dropped": "x"}',
        b"\xff",
        b"[" * 100_000,
        format_json(event()).replace(b"closed", b"melted"),
        format_json(event())[:-3],
    ],
)
def test_any_other_line_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text is msgspec's
        parse_json(line)


@given(st.text(), st.text())
def test_no_text_of_a_server_reaches_a_terminal_with_control_characters(client: str, route: str) -> None:
    line = format_line(event(client=client, route=route))
    assert not any(unicodedata.category(character) == "Cc" for character in line)
