"""What a backend hears first: the header, and what its client has said by then.

The law: nothing here waits, and the client's socket is not watched yet: its payload is fetched when it is wanted, and
leaves with the header in one send. A client that says nothing first does not hold the header back.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from proxy.relay.clients import FIRST_OCTETS, Words

if TYPE_CHECKING:
    from proxy.relay.relay import Relay

_ONE_SEGMENT: Final = 512
"""Octets that fit into one segment on every path (RFC 9293 section 3.7.1 has 536 where nothing is known)."""


class Opening:
    """A client that waits for its backend."""

    __slots__ = ("client", "client_ended", "header", "payload", "relay", "source", "words")

    def __init__(self, relay: Relay, client: socket.SocketType, header: bytes, *, source: tuple[str, int]) -> None:
        self.relay = relay
        self.client = client
        self.source = source
        """Address and port of the client."""
        self.header = header
        self.payload = b""
        self.words = Words.TOO_FEW
        self.client_ended = False
        """It has sent FIN."""

    def listen(self) -> bool:
        """Take what the client has said by now; False where it is gone."""
        if self.payload or self.client_ended:
            return True
        relay = self.relay
        try:
            count = self.client.recv_into(relay.buffer)
        except BlockingIOError:
            return True
        except OSError:
            return False
        # No octet and no error is FIN: it may still want to hear what the backend says.
        if not count:
            self.client_ended = True
            return True
        self.payload = payload = bytes(relay.view[:count])
        if payload[0] not in FIRST_OCTETS:
            # Nearly everybody; the look would cost each connection a microsecond.
            self.words = Words.HARMLESS
        else:
            host, port = self.source
            self.words = relay.clients.look_at(payload, host=host, port=port)
        return True

    def say(self, backend: socket.SocketType) -> int:
        """Tell a backend all of it in one send; how many octets went. Raises OSError."""
        octets = self.header + self.payload
        if len(octets) > _ONE_SEGMENT:
            send_at_once(backend)
        return backend.send(octets) if octets else 0

    @property
    def is_short(self) -> bool:
        """It left in one segment, and the backend's socket was not told yet to send at once what comes next."""
        return len(self.header) + len(self.payload) <= _ONE_SEGMENT


def send_at_once(sock: socket.SocketType) -> None:
    """Have no segment wait for the acknowledgement of the one before it (TCP_NODELAY, tcp(7))."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
