"""The demo's ingress: no PROXY header, no word."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from dnsproxy.demo.ingress import Client, parse_header, serve_ingress

GET = b"GET / HTTP/1.1\r\nHost: app.example.org\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "client"),
    [
        pytest.param(b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 80", Client("192.0.2.7", 5000), id="IPv4"),
        pytest.param(b"PROXY TCP6 2001:db8::7 2001:db8::1 5000 80", Client("2001:db8::7", 5000), id="IPv6"),
        pytest.param(b"PROXY UNKNOWN", None, id="unknown"),
        pytest.param(b"PROXY TCP4 192.0.2.7 192.0.2.1 5000", None, id="a field short"),
        pytest.param(b"PROXY TCP4 192.0.2.7 192.0.2.1 +500 80", None, id="signed port"),
        pytest.param(b"PROXY UDP4 192.0.2.7 192.0.2.1 5000 80", None, id="other protocol"),
        pytest.param(b"GET / HTTP/1.1", None, id="a request"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_header_names_the_client(line: bytes, client: Client | None) -> None:
    assert parse_header(line) == client


async def exchange(sent: bytes) -> bytes:
    """What comes back for octets sent over a real connection."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve_ingress, listeners)
        async with await trio.testing.open_stream_to_socket_listener(listeners[0]) as stream:
            received = b""
            try:
                await stream.send_all(sent)
                await stream.send_eof()
                while chunk := await stream.receive_some():
                    received += chunk
            except trio.BrokenResourceError:
                pass  # closed with octets of ours unread
        nursery.cancel_scope.cancel()
    return received


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(GET, id="a plain request"),
        pytest.param(b"PROXY UNKNOWN\r\n" + GET, id="an unknown client"),
        pytest.param(b"P" * 200 + b"\r\n" + GET, id="a line that is too long"),
        pytest.param(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", id="a v2 header"),
        pytest.param(b"PROXY TCP4 192.0.2.7", id="a cut header"),
        pytest.param(b"", id="nothing"),
    ],
)
async def test_without_a_good_header_there_is_no_response(sent: bytes) -> None:
    assert await exchange(sent) == b""


async def test_with_a_header_the_response_names_the_client_in_it() -> None:
    response = await exchange(b"PROXY TCP4 192.0.2.7 192.0.2.1 5000 80\r\n" + GET)
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")
    assert response.endswith(b"\r\n\r\nhello 192.0.2.7 port 5000\n")
