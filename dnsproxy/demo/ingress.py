"""The ingress of the story: a web server that refuses connections without a PROXY header.

The law: like nginx with `listen ... proxy_protocol`, it closes a connection without a header and sends no response. The
client's address in a response comes from the header alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import trio

_LONGEST_V1: Final = 107  # octets of a PROXY v1 header, CR LF included (PROXY protocol, section 2.1)
_LARGEST_HEAD: Final = 16_384
_PATIENCE: Final = 5
_FIELDS: Final = 6  # PROXY TCP4 SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT


@dataclass(frozen=True, slots=True)
class Client:
    """The client that a PROXY header names."""

    address: str
    port: int


def parse_header(line: bytes) -> Client | None:
    """The client in a v1 header line (without CR LF), or None if the line is not such a header."""
    fields = line.split(b" ")
    if (
        len(fields) != _FIELDS
        or fields[0] != b"PROXY"
        or fields[1] not in (b"TCP4", b"TCP6")
        or not fields[4].isdigit()
    ):
        return None
    return Client(fields[2].decode("ascii", "replace"), int(fields[4]))


async def serve_ingress(stream: trio.SocketStream) -> None:
    """Serve one connection; a handler for trio.serve_listeners."""
    with trio.move_on_after(_PATIENCE):
        try:
            async with stream:
                await _serve(stream)
        except trio.BrokenResourceError:
            return  # the client is gone


async def _serve(stream: trio.SocketStream) -> None:
    received = bytearray()
    line = await _take_until(stream, received, b"\r\n", limit=_LONGEST_V1)
    client = parse_header(line) if line is not None else None
    if client is None or await _take_until(stream, received, b"\r\n\r\n", limit=_LARGEST_HEAD) is None:
        return
    body = f"hello {client.address} port {client.port}\n".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    await stream.send_all(head.encode() + body)


async def _take_until(stream: trio.SocketStream, received: bytearray, end: bytes, *, limit: int) -> bytes | None:
    """Remove and return the octets before `end`; None if the limit or the end of the stream comes first."""
    while end not in received:
        chunk = await stream.receive_some() if len(received) <= limit else b""
        if not chunk:
            return None
        received += chunk
    taken, _, rest = bytes(received).partition(end)
    received[:] = rest
    return taken if len(taken) + len(end) <= limit else None
