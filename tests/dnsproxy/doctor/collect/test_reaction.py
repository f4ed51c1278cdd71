"""Any bytes are a reaction, and what was decided stays decided."""

from __future__ import annotations

import ssl
from typing import Final

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.doctor.collect.reaction import Reaction, broken, is_decided, judge_response
from dnsproxy.doctor.facts.probes import Outcome

CLOSED: Final = Reaction(Outcome.CLOSED)
RESET: Final = Reaction(Outcome.RESET, "Connection reset by peer")
SILENT: Final = Reaction(Outcome.SILENT, "nothing within 4 s")

RESPONSES: Final = [
    (b"HTTP/1.1 200 OK\r\n", Reaction(Outcome.ANSWERED, "200 OK", 200)),
    (b"HTTP/1.1 200 OK\n", Reaction(Outcome.ANSWERED, "200 OK", 200)),
    (b"HTTP/1.1 200 \r\n", Reaction(Outcome.ANSWERED, "200", 200)),
    (b"HTTP/2 200\r\n", Reaction(Outcome.ANSWERED, "200", 200)),
    (b"HTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n", Reaction(Outcome.ANSWERED, "503 Service Unavailable", 503)),
    (b"HTTP/1.0 400\r\n", Reaction(Outcome.BAD_REQUEST, "400", 400)),
    (b"HTTP/1.0 400 Bad\r\n", Reaction(Outcome.BAD_REQUEST, "400 Bad", 400)),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Reaction(Outcome.ANSWERED, "101 Switching Protocols", 101)),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n", Reaction(Outcome.ANSWERED, "404 Not Found", 404)),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 \n\nHTTP/1.1 400 No\r\n",
     Reaction(Outcome.BAD_REQUEST, "400 No", 400)),
    (b"HTTP/1.1 100 Continue\r\n\r\nSSH-2.0\r\n", Reaction(Outcome.GARBAGE, "SSH-2.0")),
    (b"\x15\x03\x01\x00\x02\x02\x0a\n", Reaction(Outcome.GARBAGE, "\x15\x03\x01\x00\x02\x02")),
    (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nHTTP/1.1 200 OK\r\n",
     Reaction(Outcome.GARBAGE, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2")),
    (b"SSH-2.0-OpenSSH_9.6\r\n", Reaction(Outcome.GARBAGE, "SSH-2.0-OpenSSH_9.6")),
    (b"<html>\n", Reaction(Outcome.GARBAGE, "<html>")),
    (b"HTTP/1.1 4000 Bad\r\n", Reaction(Outcome.GARBAGE, "HTTP/1.1 4000 Bad")),
    (b"HTTP/1.1 40 Bad\r\n", Reaction(Outcome.GARBAGE, "HTTP/1.1 40 Bad")),
    (b"HTTP/1.1 -40 Bad\r\n", Reaction(Outcome.GARBAGE, "HTTP/1.1 -40 Bad")),
    (b"HTTP/1.1 \xd9\xa1\xd9\xa2\xd9\xa3\r\n", Reaction(Outcome.GARBAGE, "HTTP/1.1 \xd9\xa1\xd9\xa2\xd9\xa3")),
    (b"HTTP/1.1\r\n", Reaction(Outcome.GARBAGE, "HTTP/1.1")),
    (b"HTTPS/1.1 200 OK\r\n", Reaction(Outcome.GARBAGE, "HTTPS/1.1 200 OK")),
    (b"http/1.1 200 OK\r\n", Reaction(Outcome.GARBAGE, "http/1.1 200 OK")),
    (b"\r\nHTTP/1.1 200 OK\r\n", Reaction(Outcome.GARBAGE, "")),
]  # fmt: skip
IDS: Final = [
    "200", "a bare line feed", "an empty reason", "HTTP/2 without a reason", "headers", "400 without a reason", "400",
    "101 is final", "100 first", "two informational ones first", "100 and then another protocol", "a TLS alert",
    "its own PROXY header", "SSH", "HTTP/0.9", "four digits", "two digits", "a sign", "digits that are not ASCII",
    "no status", "a longer name", "small letters", "an empty line first",
]  # fmt: skip


@pytest.mark.parametrize(("received", "reaction"), RESPONSES, ids=IDS)
def test_a_whole_line_decides_whatever_follows(received: bytes, reaction: Reaction) -> None:
    assert is_decided(received)
    for end in (CLOSED, RESET, SILENT):
        assert judge_response(received, end) == reaction
        assert judge_response(received + b"\r\n\r\nHTTP/1.1 500 Later\r\n\r\n", end) == reaction


@pytest.mark.parametrize(
    ("received", "end", "reaction"),
    [
        (b"", CLOSED, CLOSED),
        (b"", RESET, RESET),
        (b"", SILENT, SILENT),
        (b"HT", SILENT, Reaction(Outcome.SILENT, "nothing within 4 s but 'HT'")),
        (b"HTTP/1.1 50", SILENT, Reaction(Outcome.SILENT, "nothing within 4 s but 'HTTP/1.1 50'")),
        (b"HTTP/1.1 503", SILENT, Reaction(Outcome.ANSWERED, "503", 503)),
        (b"HTTP/1.1 400 Bad Requ", RESET, Reaction(Outcome.BAD_REQUEST, "400 Bad Requ", 400)),
        (b"HTTP/1.1 50", CLOSED, Reaction(Outcome.GARBAGE, "HTTP/1.1 50")),
        (b"<p>Error code: 400", RESET, Reaction(Outcome.GARBAGE, "<p>Error code: 400")),
        (b"\0\0\x12\x04", SILENT, Reaction(Outcome.GARBAGE, "\0\0\x12\x04")),
        (b"HTTP/1.1 100 Continue\r\n\r\n", CLOSED, Reaction(Outcome.ANSWERED, "100 Continue")),
        (b"HTTP/1.1 100 Continue\r\n\r\n", SILENT, Reaction(Outcome.ANSWERED, "100 Continue")),
        (b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </a>\r\n" * 1000, CLOSED,
         Reaction(Outcome.ANSWERED, "103 Early Hints")),
    ],
    ids=["closed", "reset", "silent", "too slow", "too slow for a status", "too slow for a line end",
         "reset in the reason", "closed in the status", "no line end", "SETTINGS of HTTP/2", "100 and the end",
         "100 and silence", "endless headers of an informational response"],
)  # fmt: skip
def test_bytes_without_a_final_line_are_judged_by_their_end(received: bytes, end: Reaction, reaction: Reaction) -> None:
    assert not is_decided(received)
    assert judge_response(received, end) == reaction


PIECES: Final = st.sampled_from(
    [b"HTTP/1.1 ", b"HTTP/", b"100 Continue", b"200 OK", b"400", b"\r\n", b"\n", b"\r", b" ", b"X: y", b"\0", b"\xff"]
)


@given(st.lists(PIECES, max_size=12).map(b"".join), st.binary(max_size=20))
def test_what_is_decided_stays_so(received: bytes, more: bytes) -> None:
    if is_decided(received):
        assert is_decided(received + more)
        assert judge_response(received + more, SILENT) == judge_response(received, CLOSED)


@given(st.lists(PIECES, max_size=12).map(b"".join) | st.binary())
def test_any_bytes_are_a_reaction(received: bytes) -> None:
    reaction = judge_response(received, CLOSED)
    assert (reaction.status == 400) == (reaction.outcome is Outcome.BAD_REQUEST)
    assert reaction.status == 0 or reaction.outcome in (Outcome.ANSWERED, Outcome.BAD_REQUEST)


def caused(error: BaseException) -> BaseException:
    outer = trio.BrokenResourceError()
    outer.__cause__ = error
    return outer


def tls_error() -> ssl.SSLError:
    incoming = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, ssl.MemoryBIO(), server_hostname="app.example.org")
    incoming.write(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(ssl.SSLError) as caught:
        client.do_handshake()
    return caught.value


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (caused(ConnectionResetError(104, "x")), Reaction(Outcome.RESET, "Connection reset by peer")),
        (caused(BrokenPipeError(32, "x")), Reaction(Outcome.RESET, "Broken pipe")),
        (caused(ssl.SSLEOFError(8, "x")), Reaction(Outcome.CLOSED)),
        (caused(caused(tls_error())), Reaction(Outcome.ALERT, tls_error().reason)),
        (trio.BrokenResourceError(), Reaction(Outcome.RESET)),
        (None, Reaction(Outcome.RESET)),
    ],
    ids=["reset", "broken pipe", "end of file in TLS", "an error of TLS", "no cause", "nothing"],
)
def test_a_broken_connection_is_named_by_its_cause(error: BaseException | None, reaction: Reaction) -> None:
    assert broken(error) == reaction
