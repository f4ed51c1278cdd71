"""One connected UDP socket to an upstream, and the queries that wait for a reply on it.

The law: the socket is connected, so that the kernel drops datagrams from other addresses. Each query has a random ID
that no other query on the socket has (RFC 5452 sections 4 and 9). A port on which nothing arrives any more is replaced.
The forwarder interprets the replies.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Final, Protocol

from dnsproxy.datagrams.connected import Batches
from dnsproxy.datagrams.port import BATCH
from dnsproxy.forward.flight import Flight, Health
from sidecar.loop.poller import BROKEN
from sidecar.values.endpoints import Endpoint

_LOST: Final = 3  # queries in a row without any datagram back, after which the port is replaced
_WORN: Final = 1 << 62


class Receiver(Protocol):
    """The callbacks of an UpstreamSocket."""

    def arrived(self, sock: UpstreamSocket, replies: list[bytes]) -> None:
        """Datagrams arrived."""

    def broken(self, sock: UpstreamSocket) -> None:
        """The kernel reports that datagrams did not reach the server."""


class UpstreamSocket:
    """One socket, and the flights that wait on it, by message ID."""

    __slots__ = (
        "_batches",
        "_ids",
        "_lost",
        "_outbox",
        "_receiver",
        "endpoint",
        "health",
        "opened_at",
        "sock",
        "strays",
        "uses",
        "waiting",
    )

    def __init__(
        self,
        sock: socket.socket,
        *,
        endpoint: Endpoint,
        ids: Iterator[bytes],
        health: Health,
        batches: Batches,
        receiver: Receiver,
        opened_at: float = 0.0,
    ) -> None:
        self.sock = sock
        self.endpoint = endpoint
        self.opened_at = opened_at
        """Seconds, on the clock of the caller."""
        self.health = health
        self.waiting: dict[bytes, Flight] = {}
        self.uses = 0
        """Queries that were sent from it; a large number if it is to be replaced."""
        self.strays = 0
        """Datagrams that arrived and answered nothing."""
        self._lost = 0
        self._ids = ids
        self._outbox: list[bytes] = []
        self._batches = batches
        self._receiver = receiver

    def post(self, flight: Flight) -> None:
        """Put a query with a new ID into the outbox, and let its flight wait."""
        waiting = self.waiting
        message_id = next(self._ids)
        while message_id in waiting:
            message_id = next(self._ids)
        waiting[message_id] = flight
        flight.attempts += ((self, message_id),)
        self._outbox.append(message_id + flight.key)

    def flush(self) -> list[Flight]:
        """Send the outbox; returns the flights whose query the kernel refused."""
        outbox, self._outbox = self._outbox, []
        self.uses += len(outbox)
        if len(outbox) == 1:
            return [] if self._send_one(outbox[0]) else self._forget(outbox)
        failed: list[bytes] = []
        while outbox:
            try:
                sent = self._batches.send_batch(self.sock.fileno(), outbox[:BATCH])
            except OSError as error:
                # ECONNREFUSED is about an *earlier* datagram (udp(7)); this one was not sent: send it alone.
                if error.errno != errno.ECONNREFUSED or not self._send_one(outbox[0]):
                    failed.append(outbox[0])
                sent = 1
            outbox = outbox[sent:]
        return self._forget(failed)

    def _send_one(self, datagram: bytes) -> bool:
        try:
            try:
                self.sock.send(datagram)
            except ConnectionRefusedError:
                self.sock.send(datagram)
        except OSError:
            return False
        return True

    def _forget(self, datagrams: list[bytes]) -> list[Flight]:
        return [self.waiting.pop(datagram[:2]) for datagram in datagrams if datagram[:2] in self.waiting]

    def note_miss(self) -> None:
        """Count a query without a reply.

        A path may keep state for each port: a NAT entry that leads to a server that is gone is kept alive by the
        queries themselves, so only another port reaches the servers that are left.
        """
        self.health.misses += 1
        self._lost += 1
        if self._lost >= _LOST:
            self.uses = _WORN

    def on_event(self, events: int) -> None:
        """Receive one batch; the poller is level-triggered, so the next one gets its own turn."""
        # Read the pending error first, which clears it: it would hide the replies that arrived before it.
        sound = not events & BROKEN or self._is_sound()
        replies: list[bytes] = []
        try:
            replies = self._batches.receive(self.sock.fileno())
        except BlockingIOError:
            pass
        except OSError:
            sound = False
        if replies:
            self._lost = 0
            self._receiver.arrived(self, replies)
        if not sound:
            self._receiver.broken(self)

    def _is_sound(self) -> bool:
        with contextlib.suppress(OSError):
            return not self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return False
