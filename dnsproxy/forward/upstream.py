"""Upstreams: the servers that queries are forwarded to, and the UDP sockets we ask them from.

The law: sockets are connected, so that the kernel drops what comes from elsewhere; a query leaves from one of many
rotating random ports under a random ID (RFC 5452 sections 4 and 9). Which upstream is asked next, and when, is the
forwarder's business.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import trio

from sidecar.endpoints import Endpoint
from sidecar.poller import BROKEN, Poller

if TYPE_CHECKING:
    from dnsproxy.forward.flight import Flight

SOCKETS: Final = 64
"""Ports in use at a time for one upstream."""

_USES = 4096  # queries from one port before it is given up for a fresh one
_LARGEST = 65535
_ID_BLOCK = 4096
_UNWELL = 3  # unanswered datagrams in a row after which an upstream goes behind the others
_PROBE = b"\x01\0\0\1\0\0\0\0\0\0\0\0\2\0\1"  # behind the ID: RD, one question, `. IN NS`


def random_ids() -> Iterator[bytes]:
    """Message IDs from the system's random source, two octets each, for ever."""
    while True:
        block = os.urandom(_ID_BLOCK)
        for index in range(0, _ID_BLOCK, 2):
            yield block[index : index + 2]


class UpstreamSocket:
    """One connected socket and the queries that wait for a reply on it, by message ID."""

    __slots__ = ("_arrived", "_broken", "_buffer", "_ids", "sock", "upstream", "uses", "waiting")

    def __init__(self, upstream: Upstream, sock: socket.socket) -> None:
        self.upstream = upstream
        self.sock = sock
        self.waiting: dict[bytes, Flight] = {}
        self.uses = 0
        self._ids = upstream.ids
        self._buffer = upstream.buffer
        self._arrived = upstream.arrived
        self._broken = upstream.broken

    def send(self, flight: Flight) -> bytes:
        """Send a query under a fresh ID and remember who waits. Raises OSError where the kernel refuses."""
        message_id = next(self._ids)
        while message_id in self.waiting:
            message_id = next(self._ids)
        datagram = message_id + flight.query.message[2:]
        try:
            self.sock.send(datagram)
        except ConnectionRefusedError:
            # The kernel reports here that an *earlier* datagram was refused (udp(7)); this one was not sent.
            self.sock.send(datagram)
        self.waiting[message_id] = flight
        self.uses += 1
        return message_id

    def on_event(self, events: int) -> None:
        """Take one datagram; level-triggered, the next has its own turn."""
        try:
            size = self.sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            self._broken(self)
            return
        self._arrived(self, bytes(self._buffer[:size]))
        if events & BROKEN:
            self._broken(self)


class Upstream:
    """One server and a rotating set of sockets towards it."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        poller: Poller,
        arrived: Callable[[UpstreamSocket, bytes], None],
        broken: Callable[[UpstreamSocket], None],
    ) -> None:
        self.endpoint = endpoint
        self.arrived = arrived
        self.broken = broken
        self.ids = random_ids()
        self.buffer = memoryview(bytearray(_LARGEST))
        self.misses = 0
        """Datagrams in a row that it left unanswered."""
        self._poller = poller
        self._sockets: list[UpstreamSocket] = []
        self._retired: list[UpstreamSocket] = []
        self._next = 0
        self._family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET

    def __str__(self) -> str:
        return str(self.endpoint)

    @property
    def unwell(self) -> bool:
        """Whether it goes behind the others."""
        return self.misses >= _UNWELL

    @property
    def waiting(self) -> int:
        """Replies that its sockets wait for."""
        return sum(len(sock.waiting) for sock in self._sockets + self._retired)

    async def probe(self, *, timeout: float) -> None:
        """Ask for the root's servers as CoreDNS does; whatever comes back shows that it is well."""
        query = next(self.ids) + _PROBE
        with trio.move_on_after(timeout), contextlib.suppress(OSError):
            with trio.socket.socket(self._family, socket.SOCK_DGRAM) as sock:
                await sock.connect((self.endpoint.host, self.endpoint.port))
                await sock.send(query)
                while (await sock.recv(_LARGEST))[:2] != query[:2]:
                    pass
            self.misses = 0

    def socket(self) -> UpstreamSocket:
        """The socket for the next query. Raises OSError where none can be had."""
        if len(self._sockets) < SOCKETS:
            try:
                self._sockets.append(self._open())
            except OSError:
                # Out of descriptors, most likely: those that are open serve as well.
                if not self._sockets:
                    raise
            else:
                return self._sockets[-1]
        self._next = (self._next + 1) % len(self._sockets)
        chosen = self._sockets[self._next]
        return self._renew(self._next) if chosen.uses >= _USES else chosen

    def _renew(self, index: int) -> UpstreamSocket:
        """Give a port up for a fresh one; where none can be had, go on with the old."""
        with contextlib.suppress(OSError):
            fresh = self._open()
            self._retired.append(self._sockets[index])
            self._sockets[index] = fresh
        return self._sockets[index]

    def close_retired(self) -> None:
        """Close the sockets that were given up and have nothing to wait for."""
        for done in [sock for sock in self._retired if not sock.waiting]:
            self._retired.remove(done)
            self._close(done)

    def close(self) -> None:
        """Close every socket."""
        for sock in self._sockets + self._retired:
            self._close(sock)
        self._sockets, self._retired = [], []

    def _open(self) -> UpstreamSocket:
        sock = socket.socket(self._family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect((self.endpoint.host, self.endpoint.port))
            opened = UpstreamSocket(self, sock)
            self._poller.add(sock.fileno(), opened.on_event, edge=False)
        except OSError:
            sock.close()
            raise
        return opened

    def _close(self, sock: UpstreamSocket) -> None:
        self._poller.remove(sock.sock.fileno())
        sock.sock.close()
