"""A relay on loopback sockets, with the test as the client and as the backend."""

from __future__ import annotations

import functools
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from proxy.backends.name_resolver import LookUp
from proxy.header.addresses import Header
from proxy.header.protocol import parse_header
from proxy.relay.connection import Connection
from proxy.relay.relay import Relay, open_listeners
from proxy.relay.side import NO_OWNER, Side
from proxy.relay.splice import Pipes
from proxy.routes import Route, ServicePort
from proxy.settings import Settings
from sidecar.values.endpoints import Endpoint
from sidecar.values.host_port import HostPort

Socket = trio.socket.SocketType

V4 = "127.0.0.1"
V6 = "::1"


class World:
    """The relay, and the listening socket of the test's backend."""

    def __init__(self, relay: Relay, backend: Socket, stopping: trio.Event) -> None:
        self.relay = relay
        self.backend = backend
        self.stopping = stopping
        self.endpoint = relay.listeners[0].endpoint

    async def connect(self, *, receive_buffer: int | None = None) -> Socket:
        """A client of the relay."""
        client = trio.socket.socket(socket.AF_INET6 if ":" in self.endpoint.host else socket.AF_INET)
        try:
            if receive_buffer is not None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            await client.connect((self.endpoint.host, self.endpoint.port))
        except BaseException:
            client.close()
            raise
        return client

    async def accept(self) -> tuple[Socket, Header]:
        """The relay's connection to the backend, after its header."""
        accepted, _ = await self.backend.accept()
        return accepted, await read_header(accepted)

    async def pair(self, *, receive_buffer: int | None = None) -> tuple[Socket, Socket]:
        """A client and the backend's end of its connection, after the header."""
        client = await self.connect(receive_buffer=receive_buffer)
        backend, _ = await self.accept()
        return client, backend


async def read_header(stream: Socket) -> Header:
    """Read exactly the header."""
    octets = b""
    while True:
        octets = await stream.recv(65_536, socket.MSG_PEEK)
        assert octets, "the connection ended before its header"
        parsed = parse_header(octets)
        if parsed is not None:
            await stream.recv(parsed.length)
            return parsed.header


@asynccontextmanager
async def relaying(host: str = V4, **settings: Any) -> AsyncIterator[World]:
    """A relay with one route to a backend of the test, for the duration of the block."""
    with trio.socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as backend:
        await backend.bind((host, 0))
        backend.listen(1024)
        destination = HostPort(host, backend.getsockname()[1])
        async with relaying_to(destination, host=host, backend=backend, **settings) as world:
            yield world


@asynccontextmanager
async def relaying_to(
    destination: HostPort | ServicePort,
    *,
    host: str = V4,
    backend: Socket | None = None,
    look_up: LookUp | None = None,
    pipes: Pipes | None = None,
    **settings: Any,
) -> AsyncIterator[World]:
    """A relay with one route to `destination`; `look_up` replaces the resolver, and `pipes` the pool of pipes."""
    configured = Settings(routes=(Route(Endpoint(host, 0), destination),), **settings)
    relay = Relay(configured, open_listeners(configured), look_up=look_up, pipes=pipes)
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(functools.partial(relay.serve, stopping=stopping))
        if backend is None:
            backend = trio.socket.socket()
        with backend:
            yield World(relay, backend, stopping)
        nursery.cancel_scope.cancel()


async def read_to_end(stream: Socket) -> tuple[bytes, str]:
    """All data, and how it ended: "fin" or "reset"."""
    received = bytearray()
    try:
        while octets := await stream.recv(65_536):
            received += octets
    except ConnectionResetError:
        return bytes(received), "reset"
    return bytes(received), "fin"


async def send_all(stream: Socket, octets: bytes) -> None:
    """Send all of it."""
    view = memoryview(octets)
    while view:
        view = view[await stream.send(view) :]


def reset(stream: Socket) -> None:
    """Close with RST."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


async def until(condition: Any) -> None:
    """Poll for a condition that has no event; the test's deadline limits the wait."""
    while not condition():  # noqa: ASYNC110  # the kernel's state has no event
        await trio.sleep(0.005)


_PATTERN = bytes(range(251))


def pattern(size: int) -> bytes:
    """Data that reveals lost, repeated or moved pieces."""
    return (_PATTERN * (size // len(_PATTERN) + 1))[:size]


def acknowledged(stream: Socket) -> bool:
    """Whether the peer's kernel has received everything that was sent."""
    return Side(NO_OWNER, stream._sock).unsent() == 0  # type: ignore[attr-defined]


def sides_of(world: World) -> Connection:
    """The only connection of the relay."""
    (only,) = world.relay.core.alive
    assert isinstance(only, Connection)
    return only


async def received_in(stream: Socket, length: int) -> bytes:
    """Read exactly `length` bytes."""
    octets = b""
    while len(octets) < length:
        octets += await stream.recv(length - len(octets))
    return octets
