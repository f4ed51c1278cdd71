"""Servers on loopback that react in one way each, as real and broken servers do."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

import trio
import trustme

from sidecar.values.endpoints import Endpoint

Handler = Callable[[trio.SocketStream], Awaitable[None]]
TlsHandler = Callable[[trio.SSLStream[trio.SocketStream]], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[Endpoint]:
    """A server on a free port; a client that leaves ends its connection alone."""

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await handler(stream)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handle, listeners)
        yield Endpoint("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


def saying(octets: bytes, *, after: int = 1) -> Handler:
    """Send bytes after some of the client's, and close."""

    async def handle(stream: trio.SocketStream) -> None:
        if after:
            await stream.receive_some()
        await stream.send_all(octets)

    return handle


def dripping(octets: bytes, *, seconds: float) -> Handler:
    """Send one byte at a time, and keep the connection."""

    async def handle(stream: trio.SocketStream) -> None:
        for octet in octets:
            await stream.send_all(bytes([octet]))
            await trio.sleep(seconds)
        await trio.sleep_forever()

    return handle


async def say_nothing(_: trio.SocketStream) -> None:
    """Read nothing, send nothing, keep the connection."""
    await trio.sleep_forever()


async def half_close(stream: trio.SocketStream) -> None:
    """Send the end of file, and go on reading."""
    await stream.send_eof()
    while await stream.receive_some():
        pass


async def reset(stream: trio.SocketStream) -> None:
    """Send RST after the first bytes."""
    await stream.receive_some()
    await reset_at_once(stream)


async def reset_at_once(stream: trio.SocketStream) -> None:
    """Send RST: close() does it where it may not linger."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def refuse_and_reset(stream: trio.SocketStream) -> None:
    """Close with a part of the request unread; the response has no line end."""
    await stream.receive_some(1)
    await stream.send_all(b"<p>Error code: 400")


def over_tls(
    handler: TlsHandler,
    certificate: trustme.LeafCert,
    *,
    alpn: Iterable[str] = (),
    version: ssl.TLSVersion | None = None,
) -> Handler:
    """A server of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    context.set_alpn_protocols(list(alpn))
    if version is not None:
        context.minimum_version = context.maximum_version = version

    async def handle(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, context, server_side=True)
        await tls.do_handshake()
        await handler(tls)

    return handle


def saying_over_tls(octets: bytes) -> TlsHandler:
    """Send bytes after a request, and close."""

    async def handle(tls: trio.SSLStream[trio.SocketStream]) -> None:
        await tls.receive_some()
        await tls.send_all(octets)
        await tls.aclose()

    return handle
