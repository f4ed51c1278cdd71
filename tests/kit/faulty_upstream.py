"""A scripted faulty upstream on loopback: UDP and TCP or TLS on one port, and every fault of a server or a path.

A script is a function from a query's octets to the steps that answer it. No steps mean loss (UDP) or silence (TCP);
plain octets are a reply; the classes below are the other steps. The steps of one query run in sequence, those of
different queries in parallel, so a Pause delays and reorders replies.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import trio
import trio.testing

from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies


@dataclass(frozen=True)
class Pause:
    """Send nothing for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Until:
    """Send nothing until the test resumes it."""

    event: trio.Event


@dataclass(frozen=True)
class Elsewhere:
    """A reply from another port than the queried one (UDP)."""

    message: bytes


@dataclass(frozen=True)
class Part:
    """Octets without a length prefix (TCP): a reply in pieces, or the beginning of one."""

    octets: bytes


@dataclass(frozen=True)
class Close:
    """End the connection with FIN (TCP)."""


@dataclass(frozen=True)
class Reset:
    """End the connection with RST (TCP)."""


Step = bytes | Pause | Until | Elsewhere | Part | Close | Reset
Script = Callable[[bytes], Iterable[Step]]


def answer(asked: bytes) -> list[Step]:
    """The script of a healthy server."""
    return [upstream_replies.right(asked)]


def silence(_asked: bytes) -> list[Step]:
    """The script of a server whose replies are lost."""
    return []


@dataclass(frozen=True)
class Asked:
    """One query, as received by the upstream."""

    message: bytes
    at: float
    """Time of receipt, on trio's clock."""
    source: tuple[str, int]


@dataclass
class FaultyUpstream:
    """The behaviour of an upstream, which a test may change at any time, and its received queries."""

    endpoint: Endpoint
    datagrams: Script = answer
    streams: Script = answer
    greeting: Iterable[Step] = ()
    """Steps for a connection before any query."""
    asked_datagrams: list[Asked] = field(default_factory=list)
    asked_streams: list[Asked] = field(default_factory=list)
    connections: int = 0
    """The number of connections that were opened."""
    secured: ssl.SSLContext | None = None
    """The TLS context for streams."""
    life: trio.CancelScope = field(default_factory=trio.CancelScope)
    dead: trio.Event = field(default_factory=trio.Event)
    _news: trio.Event = field(default_factory=trio.Event)

    def note(self, kind: list[Asked], message: bytes, source: tuple[str, int]) -> None:
        kind.append(Asked(message, trio.current_time(), source))
        self._news.set()
        self._news = trio.Event()

    async def die(self) -> None:
        """Close every socket, like a killed server: from now on the address refuses."""
        self.life.cancel()
        await self.dead.wait()

    async def wait_asked(self, *, datagrams: int = 0, streams: int = 0) -> None:
        """Wait until this many queries have arrived."""
        while len(self.asked_datagrams) < datagrams or len(self.asked_streams) < streams:
            await self._news.wait()


@asynccontextmanager
async def faulty_upstream(
    datagrams: Script = answer,
    streams: Script = answer,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    secured: ssl.SSLContext | None = None,
    listens: bool = True,
) -> AsyncIterator[FaultyUpstream]:
    """Run an upstream for the duration of the block; one that does not listen refuses every connection."""
    udp, tcp = _bind_both(host, port, listen=listens)
    upstream = FaultyUpstream(Endpoint(host, udp.getsockname()[1]), datagrams, streams, secured=secured)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_serve, upstream, udp, tcp)
        yield upstream
        nursery.cancel_scope.cancel()


async def _serve(upstream: FaultyUpstream, udp: socket.socket, tcp: socket.socket) -> None:
    with trio.socket.from_stdlib_socket(udp) as asked_socket, trio.socket.from_stdlib_socket(tcp) as opened_socket:
        async with trio.open_nursery() as nursery:
            upstream.life = nursery.cancel_scope
            nursery.start_soon(_serve_datagrams, upstream, asked_socket, nursery)
            if opened_socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                nursery.start_soon(_serve_streams, upstream, trio.SocketListener(opened_socket))
    upstream.dead.set()


@contextmanager
def refusing_upstream(host: str = "127.0.0.1") -> Iterator[Endpoint]:
    """An address that answers every datagram with ICMP port unreachable, and every connection with RST.

    The port is reserved, so that no other program on this computer can answer there: a UDP socket connected to itself
    receives datagrams from no other socket, and a TCP socket that does not listen accepts no connection.
    """
    udp, tcp = _bind_both(host, 0, listen=False)
    with udp, tcp:
        udp.connect(udp.getsockname())
        yield Endpoint(host, udp.getsockname()[1])


def _bind_both(host: str, port: int, *, listen: bool = True) -> tuple[socket.socket, socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(50):
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.bind((host, port))
        tcp = socket.socket(family, socket.SOCK_STREAM)
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tcp.bind(udp.getsockname())
        except OSError:
            # Another program uses this number for TCP.
            udp.close()
            tcp.close()
            continue
        if listen:
            tcp.listen(128)
        udp.setblocking(False)
        tcp.setblocking(False)
        return udp, tcp
    raise AssertionError("no port is free for both UDP and TCP")


async def _serve_datagrams(upstream: FaultyUpstream, sock: trio.socket.SocketType, nursery: trio.Nursery) -> None:
    while True:
        message, source = await sock.recvfrom(65535)
        upstream.note(upstream.asked_datagrams, message, source)
        nursery.start_soon(_play_datagram, upstream.datagrams(message), sock, source)


async def _play_datagram(steps: Iterable[Step], sock: trio.socket.SocketType, source: tuple[str, int]) -> None:
    for step in steps:
        # The client's port may be closed by now.
        with contextlib.suppress(ConnectionRefusedError):
            match step:
                case bytes():
                    await sock.sendto(step, source)
                case Elsewhere(message):
                    with trio.socket.socket(sock.family, socket.SOCK_DGRAM) as other:
                        await other.sendto(message, source)
                case _:
                    await _wait(step)


async def _serve_streams(upstream: FaultyUpstream, listener: trio.SocketListener) -> None:
    async def serve(transport: trio.SocketStream) -> None:
        upstream.connections += 1
        try:
            source = transport.socket.getpeername()
        except OSError:
            return  # the connection ended before we looked
        connection = _Connection(transport, upstream.secured)
        await _play_stream(upstream.greeting, connection)
        async with trio.open_nursery() as nursery:
            received = bytearray()
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async for chunk in connection.stream:
                    received += chunk
                    while len(received) >= 2 and len(received) >= (end := 2 + int.from_bytes(received[:2], "big")):
                        message = bytes(received[2:end])
                        del received[:end]
                        upstream.note(upstream.asked_streams, message, source)
                        nursery.start_soon(_play_stream, upstream.streams(message), connection)

    await trio.serve_listeners(serve, [listener])


class _Connection:
    """Serve a client's connection, with or without TLS."""

    def __init__(self, transport: trio.SocketStream, secured: ssl.SSLContext | None) -> None:
        self.transport = transport
        self.writing = trio.Lock()
        self.stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = transport
        if secured is not None:
            self.stream = trio.SSLStream(transport, secured, server_side=True, https_compatible=True)


async def _play_stream(steps: Iterable[Step], connection: _Connection) -> None:
    # The client, or another query's steps, may have ended the connection (OSError: its socket is closed).
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        for step in steps:
            match step:
                case bytes() | Part():
                    async with connection.writing:
                        await _write(step, connection)
                case Close():
                    await connection.stream.aclose()
                case Reset():
                    connection.transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    await connection.transport.aclose()
                case _:
                    await _wait(step)


async def _write(step: bytes | Part, connection: _Connection) -> None:
    if isinstance(step, bytes):
        await connection.stream.send_all(upstream_replies.framed(step))
        return
    await connection.stream.send_all(step.octets)
    # Have the next piece sent as a separate segment.
    await trio.testing.wait_all_tasks_blocked(0.001)


async def _wait(step: Step) -> None:
    match step:
        case Pause(seconds):
            await trio.sleep(seconds)
        case Until(event):
            await event.wait()
        case _:
            raise AssertionError(f"{step!r} belongs to the other transport")
