"""Every end of a connection is an outcome, and every connection ends."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trustme

from dnsproxy.doctor.collect import dialling
from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import HEADERS, dial, dial_all, judge_response
from dnsproxy.doctor.facts.probes import Header, Outcome
from proxy.header.addresses import LOCAL
from proxy.header.v1 import format_v1
from proxy.header.v2 import format_v2
from sidecar.values.endpoints import Endpoint

Handler = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[Endpoint]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield Endpoint("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


def saying(octets: bytes, *, after: int = 1) -> Handler:
    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            if after:
                await stream.receive_some()
            try:
                await stream.send_all(octets)
            except trio.BrokenResourceError:
                return

    return handle


async def say_nothing(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()


async def reset(stream: trio.SocketStream) -> None:
    async with stream:
        await stream.receive_some()
        stream.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER with no time: close() sends RST


async def refuse_and_reset(stream: trio.SocketStream) -> None:
    """A server that closes with a part of the request unread; its response has no line end."""
    async with stream:
        await stream.receive_some(1)
        await stream.send_all(b"<p>Error code: 400")


def target(endpoint: Endpoint, *, tls: bool = False, header: Header = Header.PLAIN) -> DialTarget:
    return DialTarget(endpoint, "app.example.org", tls, header)


@pytest.mark.parametrize(
    ("handler", "tls", "outcome"),
    [
        (saying(b"HTTP/1.1 200 OK\r\n\r\n"), False, Outcome.ANSWERED),
        (saying(b"HTTP/1.1 308 Permanent Redirect\r\n\r\n"), False, Outcome.ANSWERED),
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), False, Outcome.BAD_REQUEST),
        (saying(b"SSH-2.0-OpenSSH\r\n", after=0), False, Outcome.GARBAGE),
        (saying(b""), False, Outcome.CLOSED),
        (refuse_and_reset, False, Outcome.GARBAGE),
        (reset, False, Outcome.RESET),
        (reset, True, Outcome.RESET),
        (saying(b""), True, Outcome.CLOSED),
        (saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), True, Outcome.GARBAGE),
        (saying(b"\x15\x03\x03\x00\x02\x02\x28"), True, Outcome.ALERT),
        (saying(b"\x15\x03\x03\x00\x02\x02\x70"), True, Outcome.ALERT),
        (saying(b"\x15\x03\x03\x00\x02\x02\x0a"), True, Outcome.GARBAGE),
        (saying(b"\x15\x03\x03\x00\x02\x02\x46"), True, Outcome.GARBAGE),
    ],
    ids=["200", "308", "400", "another protocol", "closed", "refused and reset", "reset", "reset in a handshake",
         "closed in a handshake",
         "HTTP to a handshake", "handshake_failure", "unrecognized_name", "unexpected_message", "protocol_version"],
)  # fmt: skip
async def test_every_reaction_of_a_server_is_an_outcome(handler: Handler, tls: bool, outcome: Outcome) -> None:
    async with listening(handler) as endpoint:
        probe = await dial(target(endpoint, tls=tls))
    assert probe.outcome is outcome, probe.detail


@pytest.mark.parametrize("tls", [False, True])
async def test_a_silent_server_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    monkeypatch.setattr(dialling, "ANSWER_SECONDS", 0.2)
    async with listening(say_nothing) as endpoint:
        probe = await dial(target(endpoint, tls=tls))
    assert probe.outcome is Outcome.SILENT


async def test_a_closed_port_is_refused() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    endpoint = Endpoint("127.0.0.1", listeners[0].socket.getsockname()[1])
    await listeners[0].aclose()
    probe = await dial(target(endpoint))
    assert (probe.outcome, probe.detail) == (Outcome.REFUSED, "Connection refused")


async def test_no_route_is_unreachable() -> None:
    probe = await dial(target(Endpoint("255.255.255.255", 9)))
    assert probe.outcome is Outcome.UNREACHABLE


@pytest.mark.parametrize("header", list(Header))
async def test_a_tls_server_counts_as_answered_with_any_certificate(header: Header) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("other.example.org").configure_cert(context)
    seen: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        taken = b""
        while len(taken) < len(HEADERS[header]):
            taken += await stream.receive_some(len(HEADERS[header]) - len(taken))
        seen.append(taken)
        tls = trio.SSLStream(stream, context, server_side=True)
        async with stream:
            try:
                await tls.do_handshake()
            except trio.BrokenResourceError:
                return

    async with listening(handle) as endpoint:
        probe = await dial(target(endpoint, tls=True, header=header))
    assert probe.outcome is Outcome.ANSWERED, probe.detail
    assert probe.detail.startswith("TLS")
    assert seen == [HEADERS[header]]


def test_the_headers_are_those_of_the_relays_own_connections() -> None:
    assert HEADERS[Header.V1] == format_v1(LOCAL)
    assert HEADERS[Header.V2] == format_v2(LOCAL)


@pytest.mark.parametrize(
    ("received", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\n", Outcome.ANSWERED),
        (b"HTTP/2 200\r\n", Outcome.ANSWERED),
        (b"HTTP/1.0 400\r\n", Outcome.BAD_REQUEST),
        (b"", Outcome.CLOSED),
        (b"\x15\x03\x01\x00\x02", Outcome.GARBAGE),
        (b"PROXY TCP4", Outcome.GARBAGE),
        (b"\xff" * 100, Outcome.GARBAGE),
    ],
)
def test_the_first_line_decides_the_outcome(received: bytes, outcome: Outcome) -> None:
    assert judge_response(received)[0] is outcome


async def test_many_are_dialled_and_reported_in_order() -> None:
    told: list[int] = []
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as endpoint:
        targets = [target(endpoint, header=header) for header in Header]
        probes = await dial_all(targets, told.append)
    assert [probe.header for probe in probes] == list(Header)
    assert told == [1, 2, 3]
