"""A handshake is an answer whatever follows; the status, the certificate and what went wrong stand beside it."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import ssl
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.doctor.collect.reaction import Reaction
from dnsproxy.doctor.collect.tls_exchange import exchange_over_tls
from dnsproxy.doctor.facts.probes import Outcome, ServiceIdentity
from tests.dnsproxy.doctor.collect.certificates import DAY, HOST, NOW, fake, issue, rfc3339
from tests.dnsproxy.doctor.collect.odd_servers import Handler, TlsHandler, listening, over_tls, saying, saying_over_tls

GOOD: Final = issue(HOST)
OK: Final = b"HTTP/1.1 200 OK\r\n\r\n"
TLS_1_2: Final = ssl.TLSVersion.TLSv1_2
END: Final = rfc3339(NOW + 30 * DAY)


async def reaction_to(handler: Handler, *, hostname: str = HOST, seconds: float = 20) -> Reaction:
    async with listening(handler) as endpoint:
        stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
        async with stream:
            return await exchange_over_tls(stream, hostname, seconds=seconds)


async def close(_: trio.SSLStream[trio.SocketStream]) -> None:
    """Without the closure alert of TLS."""


async def close_politely(tls: trio.SSLStream[trio.SocketStream]) -> None:
    await tls.receive_some()
    await tls.aclose()


async def say_nothing(_: trio.SSLStream[trio.SocketStream]) -> None:
    await trio.sleep_forever()


async def speak_no_tls(tls: trio.SSLStream[trio.SocketStream]) -> None:
    await tls.receive_some()
    await tls.transport_stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(
    ("handler", "options", "detail", "status"),
    [
        (saying_over_tls(OK), {}, "TLSv1.3, 200 OK", 200),
        (saying_over_tls(OK), {"version": TLS_1_2}, "TLSv1.2, 200 OK", 200),
        (saying_over_tls(OK), {"alpn": ["http/1.1"]}, "TLSv1.3, 200 OK", 200),
        (saying_over_tls(OK), {"alpn": ["h2", "http/1.1"]}, "TLSv1.3, 200 OK", 200),
        (saying_over_tls(b"HTTP/1.1 503 Service Unavailable\r\n"), {}, "TLSv1.3, 503 Service Unavailable", 503),
        (saying_over_tls(b"HTTP/1.1 400 Bad Request\r\n"), {}, "TLSv1.3, 400 Bad Request", 400),
        (saying_over_tls(b"HTTP/1.1 103 \r\n\r\nHTTP/1.1 404 No\r\n"), {}, "TLSv1.3, 404 No", 404),
        (saying_over_tls(b"\0\0\x12\x04\0\0\0\0\0"), {}, "TLSv1.3, then garbage: \0\0\x12\x04\0\0\0\0\0", 0),
        (saying_over_tls(b""), {}, "TLSv1.3, then closed", 0),
        (close_politely, {"version": TLS_1_2}, "TLSv1.2, then closed", 0),
    ],
    ids=["200", "TLS 1.2", "ALPN of http/1.1", "ALPN of both", "503", "400", "an informational one first",
         "SETTINGS of HTTP/2", "closed", "closed in TLS 1.2"],
)  # fmt: skip
async def test_a_handshake_is_an_answer(handler: TlsHandler, options: dict[str, Any], detail: str, status: int) -> None:
    found = await reaction_to(over_tls(handler, GOOD, **options))
    assert found == Reaction(Outcome.ANSWERED, detail, status, ServiceIdentity("", (HOST,), END))


@pytest.mark.parametrize(
    ("handler", "details"),
    [
        (speak_no_tls, ("TLSv1.3, then garbage: ",)),
        # The request may meet the end of the connection, or its reset.
        (close, ("TLSv1.3, then closed", "TLSv1.3, then reset")),
    ],
    ids=["no TLS any more", "closed without an alert"],
)
async def test_a_connection_that_breaks_after_the_handshake_was_answered(
    handler: TlsHandler, details: tuple[str, ...]
) -> None:
    found = await reaction_to(over_tls(handler, GOOD))
    assert (found.outcome, found.status) == (Outcome.ANSWERED, 0)
    assert found.detail.startswith(details)
    assert found.identity == ServiceIdentity("", (HOST,), END)


async def test_silence_after_the_handshake_is_an_answer_in_time(clock: MockClock) -> None:
    found = await reaction_to(over_tls(say_nothing, GOOD), seconds=1)
    assert (found.outcome, found.detail) == (Outcome.ANSWERED, "TLSv1.3, then silent: nothing within 1 s")
    assert found.identity is not None


@pytest.mark.parametrize(
    ("alert", "reaction"),
    [
        (120, Reaction(Outcome.ALERT, "TLSV1_ALERT_NO_APPLICATION_PROTOCOL")),
        (40, Reaction(Outcome.ALERT, "SSLV3_ALERT_HANDSHAKE_FAILURE")),
        (112, Reaction(Outcome.ALERT, "TLSV1_UNRECOGNIZED_NAME")),
        (10, Reaction(Outcome.GARBAGE, "SSLV3_ALERT_UNEXPECTED_MESSAGE")),
        (70, Reaction(Outcome.GARBAGE, "TLSV1_ALERT_PROTOCOL_VERSION")),
    ],
    ids=["only HTTP/2", "handshake_failure", "unrecognized_name", "unexpected_message", "protocol_version"],
)  # fmt: skip
async def test_a_refused_handshake_is_an_alert_if_it_was_read(alert: int, reaction: Reaction) -> None:
    assert await reaction_to(saying(b"\x15\x03\x03\x00\x02\x02" + bytes([alert]))) == reaction


@pytest.mark.parametrize(
    ("certificate", "identity"),
    [
        (fake(), ServiceIdentity("hostname mismatch", ("ingress.local",), END)),
        (issue("*.example.org"), ServiceIdentity("", ("*.example.org",), END)),
        (issue(HOST, start=NOW - 2 * DAY, end=NOW - DAY), ServiceIdentity("has expired", (HOST,), rfc3339(NOW - DAY))),
    ],
    ids=["the default of ingress-nginx", "a wildcard", "expired"],
)
@pytest.mark.parametrize("version", [TLS_1_2, ssl.TLSVersion.TLSv1_3], ids=str)
async def test_a_certificate_is_judged_and_changes_nothing_else(
    certificate: Any, identity: ServiceIdentity, version: ssl.TLSVersion
) -> None:
    found = await reaction_to(over_tls(saying_over_tls(OK), certificate, version=version))
    assert (found.outcome, found.status, found.identity) == (Outcome.ANSWERED, 200, identity)


@pytest.mark.parametrize(
    ("hostname", "sni"),
    [(HOST, HOST), ("192.0.2.1", None), ("2001:db8::1", None), ("", None), ("a" * 300, None), ("a\0b", None)],
    ids=["a name", "an address", "an address of IPv6", "none", "too long", "NUL"],
)
async def test_the_server_sees_the_name_and_http_1(hostname: str, sni: str | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    GOOD.configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    protocols: list[str | None] = []

    async def handle(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, context, server_side=True)
        await tls.do_handshake()
        protocols.append(tls.selected_alpn_protocol())
        await saying_over_tls(OK)(tls)

    found = await reaction_to(handle, hostname=hostname)
    assert (found.outcome, found.status) == (Outcome.ANSWERED, 200)
    assert (names, protocols) == ([sni], ["http/1.1"])
