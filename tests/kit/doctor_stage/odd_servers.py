"""The servers that no real program of the stage shows: `python -m tests.kit.doctor_stage.odd_servers PEM`.

The law: ACCEPTS reads one PROXY header if there is one and serves like the others; SILENT answers nothing; RESETS
resets each connection.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from tests.kit.doctor_stage.servers import Server

Handler = Callable[[trio.SocketStream], Awaitable[None]]

_SHORTEST: Final = 12
"""Bytes that tell the kinds of first bytes apart; a request and a ClientHello are longer."""
_V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V2_LENGTH: Final = 16
_NOW: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with zero seconds: close(2) sends RST."""


def main() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1])
    trio.run(_serve, context)


async def _serve(context: ssl.SSLContext) -> None:
    kinds: dict[Server, Handler] = {
        Server.ACCEPTS: partial(_accept, context=context),
        Server.SILENT: _be_silent,
        Server.RESETS: _reset,
    }
    async with trio.open_nursery() as nursery:
        for server, kind in kinds.items():
            for address in (server.ipv4, server.ipv6):
                for port in (80, 443):
                    await nursery.start(partial(trio.serve_tcp, _spared(kind), port, host=address))


def _spared(kind: Handler) -> Handler:
    """One broken connection does not end the others."""

    async def handle(stream: trio.SocketStream) -> None:
        try:
            await kind(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            return

    return handle


async def _be_silent(stream: trio.SocketStream) -> None:
    async for _ in stream:
        pass


async def _reset(stream: trio.SocketStream) -> None:
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
    await stream.receive_some(1)
    stream.socket.close()


async def _accept(stream: trio.SocketStream, *, context: ssl.SSLContext) -> None:
    await _skip_header(stream)
    tls = stream.socket.getsockname()[1] == 443
    plain = trio.SSLStream(stream, context, server_side=True) if tls else stream
    request = await plain.receive_some(4096)
    status = "200 OK" if tls else "308 Permanent Redirect"
    if not request.startswith(b"GET "):
        status = "400 Bad Request"
    await plain.send_all(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


async def _skip_header(stream: trio.SocketStream) -> None:
    """Read a PROXY header of either version, without the bytes behind it."""
    start = await _peek(stream, _SHORTEST)
    if start == _V2:
        length = int.from_bytes((await _peek(stream, _V2_LENGTH))[14:16], "big")
        await stream.receive_some(_V2_LENGTH + length)
    elif start.startswith(b"PROXY "):
        line = b""
        while not line.endswith(b"\n"):
            line += await stream.receive_some(1)


async def _peek(stream: trio.SocketStream, count: int) -> bytes:
    """The first bytes, which stay; fewer at the end of the stream."""
    seen = b""
    while len(seen) < count:
        before, seen = seen, await stream.socket.recv(count, socket.MSG_PEEK)
        if len(seen) == len(before):
            if not seen:
                break
            await trio.sleep(0.01)
    return seen


if __name__ == "__main__":
    main()
