"""Dialling: one connection, one request or handshake after one kind of header, one outcome.

The law: each connection ends within its deadline, whatever the peer does, and every end is an Outcome. The header
declares a connection of the proxy itself (UNKNOWN in version 1, LOCAL in version 2), so that no log shows an invented
client.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import trio

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.text import one_line

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 4.0
_TOGETHER: Final = 16
_CHUNK: Final = 4096
_SHOWN: Final = 80
_BAD_REQUEST: Final = "400"
# The PROXY protocol, sections 2.1 and 2.2; tests compare these with what the relay sends of its own.
HEADERS: Final = {
    Header.PLAIN: b"",
    Header.V1: b"PROXY UNKNOWN\r\n",
    Header.V2: b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00",
}
# Errors of OpenSSL for a peer that does not speak TLS, or that did not recognise our handshake.
_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "UNEXPECTED_MESSAGE",
    "DECODE_ERROR",
    "RECORD",
    "HTTP_REQUEST",
    "PACKET",
    "PROTOCOL_VERSION",
)


async def dial_all(targets: Sequence[DialTarget], on_done: Callable[[int], None] = lambda _: None) -> tuple[Probe, ...]:
    """The outcomes, in the order of the targets; `on_done` is called with the number of finished connections."""
    found: dict[DialTarget, Probe] = {}
    turns = trio.CapacityLimiter(_TOGETHER)

    async def one(target: DialTarget) -> None:
        async with turns:
            found[target] = await dial(target)
            on_done(len(found))

    async with trio.open_nursery() as nursery:
        for target in targets:
            nursery.start_soon(one, target)
    return tuple(found[target] for target in targets)


async def dial(target: DialTarget) -> Probe:
    """Try one connection."""
    outcome, detail = await _dial(target)
    return Probe(
        target.endpoint.host,
        target.endpoint.port,
        target.hostname,
        target.tls,
        target.header,
        outcome,
        one_line(detail)[:_SHOWN],
    )


async def _dial(target: DialTarget) -> tuple[Outcome, str]:
    family = family_of(target.endpoint)
    with trio.socket.socket(family, socket.SOCK_STREAM) as connecting:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                await connecting.connect(socket_address(target.endpoint))
        except trio.TooSlowError:
            return Outcome.UNREACHABLE, f"no connection within {CONNECT_SECONDS:g} s"
        except OSError as error:
            refused = error.errno == errno.ECONNREFUSED
            return Outcome.REFUSED if refused else Outcome.UNREACHABLE, os.strerror(error.errno or 0)
        try:
            with trio.fail_after(ANSWER_SECONDS):
                stream = trio.SocketStream(connecting)
                await stream.send_all(HEADERS[target.header])
                return await (_handshake if target.tls else _request)(stream, target.hostname)
        except trio.TooSlowError:
            return Outcome.SILENT, f"nothing within {ANSWER_SECONDS:g} s"
        except (trio.BrokenResourceError, OSError) as error:
            return _broken(error)


async def _request(stream: trio.SocketStream, hostname: str) -> tuple[Outcome, str]:
    request = f"GET / HTTP/1.1\r\nHost: {hostname}\r\nUser-Agent: switchback-doctor\r\nConnection: close\r\n\r\n"
    received = bytearray()
    try:
        with suppress(trio.BrokenResourceError):
            await stream.send_all(request.encode())
        while b"\r\n" not in received and len(received) < _CHUNK:
            chunk = await stream.receive_some(_CHUNK)
            if not chunk:
                break
            received += chunk
    except trio.BrokenResourceError:
        # A server that rejects a request early sends its response and then resets: the response counts.
        if not received:
            raise
    return judge_response(bytes(received))


def judge_response(received: bytes) -> tuple[Outcome, str]:
    """The outcome for the first bytes of a response."""
    if not received:
        return Outcome.CLOSED, ""
    line = received.partition(b"\r\n")[0].decode("latin-1")
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/"):
        return Outcome.GARBAGE, line
    return Outcome.BAD_REQUEST if rest.startswith(_BAD_REQUEST) else Outcome.ANSWERED, rest


async def _handshake(stream: trio.SocketStream, hostname: str) -> tuple[Outcome, str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates are not checked: an ingress controller on trial often has none for the host.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    tls = trio.SSLStream(stream, context, server_hostname=hostname)
    try:
        await tls.do_handshake()
    except trio.BrokenResourceError as error:
        return _judge_handshake(error.__cause__ or error)
    return Outcome.ANSWERED, f"{tls.version()}"


def _judge_handshake(error: BaseException) -> tuple[Outcome, str]:
    """The outcome for a failed handshake."""
    if isinstance(error, ssl.SSLEOFError):
        return Outcome.CLOSED, ""
    if not isinstance(error, ssl.SSLError):
        return _broken(error)
    reason = error.reason or str(error)
    if "EOF" in reason:
        return Outcome.CLOSED, ""
    if any(part in reason for part in _NO_TLS):
        return Outcome.GARBAGE, reason
    return Outcome.ALERT, reason


def _broken(error: BaseException | None) -> tuple[Outcome, str]:
    """The outcome for a broken connection."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return Outcome.RESET, os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return Outcome.RESET, ""
