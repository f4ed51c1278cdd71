"""The pod of the story: asks a DNS server, then fetches a page from the address in the reply.

The law: it returns what it received, without a verdict. It has an address of its own, different from the relay's.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Final

import dnslib
import trio

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import random_ids
from sidecar.values.endpoints import Endpoint

ADDRESS: Final = "127.0.0.30"
_PATIENCE: Final = 5


@dataclass(frozen=True, slots=True)
class Resolved:
    """One DNS reply."""

    rcode: str
    addresses: tuple[str, ...]
    message: bytes
    """The whole reply; empty if there was none."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One HTTP exchange."""

    status: int | None
    """None if the server closed the connection without a response."""
    body: str
    port: int
    """The port that the pod sent from."""


async def resolve(server: Endpoint, hostname: str) -> Resolved:
    """Ask for the A records of a hostname over UDP."""
    query = next(random_ids()) + struct.pack("!HHHHH", wire.RD, 1, 0, 0, 0)
    query += names.to_wire(hostname) + struct.pack("!HH", wire.Type.A, wire.CLASS_IN)
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, trio.move_on_after(_PATIENCE):
        await sock.bind((ADDRESS, 0))
        try:
            await sock.connect((server.host, server.port))
            await sock.send(query)
            reply = await sock.recv(wire.MINIMUM_UDP)
        except OSError as error:
            return Resolved(f"no answer ({error.strerror})", (), b"")
        parsed = dnslib.DNSRecord.parse(reply)
        addresses = tuple(str(record.rdata) for record in parsed.rr if record.rtype == wire.Type.A)
        return Resolved(dnslib.RCODE[parsed.header.rcode], addresses, reply)
    return Resolved("no answer", (), b"")


async def fetch(address: str, port: int, hostname: str) -> Fetched:
    """GET / from an address, with the hostname in the Host header."""
    request = f"GET / HTTP/1.1\r\nHost: {hostname}:{port}\r\nConnection: close\r\n\r\n"
    received = b""
    with trio.move_on_after(_PATIENCE):
        stream = await trio.open_tcp_stream(address, port, local_address=ADDRESS)
        async with stream:
            source = stream.socket.getsockname()[1]
            try:
                await stream.send_all(request.encode())
                while chunk := await stream.receive_some():
                    received += chunk
            except trio.BrokenResourceError:
                pass  # a reset is an end too; the octets before it count
            return _parse_response(received, source)
    return Fetched(None, "", 0)


def _parse_response(received: bytes, source: int) -> Fetched:
    head, _, body = received.partition(b"\r\n\r\n")
    fields = head.split(b" ", 2)
    status = int(fields[1]) if fields[0] == b"HTTP/1.1" and fields[1].isdigit() else None
    return Fetched(status, body.decode("utf-8", "replace").strip(), source)
