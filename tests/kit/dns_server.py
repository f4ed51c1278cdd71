"""A DnsServer on port 0 for the duration of a block, and clients that ask it."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import trio

from dnsproxy.answers.table import HostTable
from dnsproxy.datagrams.open import open_port
from dnsproxy.datagrams.port import DatagramPort
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.server.stream_connection import StreamLimits
from sidecar.sockets.listeners import bound_endpoint, listen_both
from sidecar.values.endpoints import Endpoint
from tests.kit.messages import table_of
from tests.kit.upstream_replies import framed

OURS = "app.example.org"
"""The default name in the table of a server."""
OURS_AT = "192.0.2.80"
TRUSTING = ForwardSettings((), detect_loops=False)
"""Upstreams that receive only the queries of a test: no probes."""
REPLY_SECONDS = 30
"""Longer than any reply may take; a test that waits so long has failed."""


@dataclass
class Running:
    """A server and its address, for UDP and TCP."""

    server: DnsServer
    endpoint: Endpoint

    @property
    def forwarder(self) -> Forwarder:
        assert self.server.forwarder is not None
        return self.server.forwarder

    @property
    def waiting(self) -> int:
        """Replies that upstream sockets still wait for."""
        return sum(upstream.ports.waiting for upstream in self.forwarder.upstreams.used)

    async def ask(self, message: bytes) -> bytes:
        """Ask over UDP. Returns the first reply."""
        async with self.client() as client:
            await client.send(message)
            with trio.fail_after(REPLY_SECONDS):
                return await client.recv(65535)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[trio.socket.SocketType]:
        """A connected UDP socket."""
        family = socket.AF_INET6 if ":" in self.endpoint.host else socket.AF_INET
        with trio.socket.socket(family, socket.SOCK_DGRAM) as client:
            await client.connect((self.endpoint.host, self.endpoint.port))
            yield client

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(self.endpoint.host, self.endpoint.port)

    async def ask_stream(self, message: bytes) -> bytes:
        """Ask over a new TCP connection. Returns the reply."""
        async with await self.connect() as stream:
            await stream.send_all(framed(message))
            with trio.fail_after(REPLY_SECONDS):
                return await read_message(stream)


@asynccontextmanager
async def running(
    *upstreams: Endpoint,
    table: HostTable | None = None,
    limits: StreamLimits | None = None,
    forwarding: ForwardSettings = TRUSTING,
    port: Callable[[socket.socket], DatagramPort] = open_port,
    at: Endpoint | None = None,
) -> AsyncIterator[Running]:
    """Serve on loopback with these upstreams; `at` binds a given port."""
    server = DnsServer(forwarding=replace(forwarding, upstreams=upstreams), limits=limits)
    server.table = table_of(f"{OURS} {OURS_AT}") if table is None else table
    tcp, udp = listen_both(at or Endpoint("127.0.0.1", 0), flag="test")
    with udp:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(tcp))
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(server.run, [port(udp)], [listener])
            await wait_until(lambda: server.forwarder is not None)
            yield Running(server, bound_endpoint(udp))
            nursery.cancel_scope.cancel()


async def read_message(stream: trio.SocketStream) -> bytes:
    """Exactly one message from a stream; b"" if the stream ends with FIN before it."""
    size = await _read_exactly(stream, 2)
    return await _read_exactly(stream, int.from_bytes(size, "big"))


async def _read_exactly(stream: trio.SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = await stream.receive_some(size - len(received))
        if not chunk:
            assert not received, f"the stream ended inside a message, after {received!r}"
            return b""
        received += chunk
    return received


async def wait_until(condition: Callable[[], bool]) -> None:
    """Poll for a condition that has no event; a deadline limits the loop."""
    with trio.fail_after(REPLY_SECONDS):
        while not condition():  # noqa: ASYNC110  # what it looks at is plain state of the code under test
            await trio.sleep(0.002)


def open_descriptors() -> int:
    """The number of open descriptors of this process, without the one for this folder."""
    return len(os.listdir("/proc/self/fd")) - 1
