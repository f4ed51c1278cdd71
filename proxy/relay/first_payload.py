"""The first send to a backend: the PROXY header together with what the client has sent by then.

The law: nothing here waits. The client's socket is not watched yet: its payload is read when the backend can take it,
and leaves with the header in one send. A client that sends nothing first does not hold the header back. Tested in
test_dialling.py.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.loop_check import FIRST_BYTES, Verdict, judge
from proxy.relay.side import send_at_once
from proxy.tap.ended import Ending, Outcome

if TYPE_CHECKING:
    from proxy.relay.core import Core

_ONE_SEGMENT: Final = 512
"""Bytes that fit into one segment on every path (RFC 9293 section 3.7.1: 536 if the path is unknown)."""

# Members without the look-up in their enum, for each connection.
_UNDECIDED: Final = Verdict.UNDECIDED
_NO_LOOP: Final = Verdict.NO_LOOP

CLIENT_LEFT: Final = (Ending.CLIENT_LEFT, "")
_FAILED: Final[tuple[Ending, str]] = (Ending.FAILED, "")


class FirstPayload:
    """A client that waits for its backend."""

    __slots__ = ("client", "client_ended", "core", "ended", "header", "payload", "source", "verdict")

    def __init__(self, core: Core, client: socket.SocketType, header: bytes, *, source: tuple[str, int]) -> None:
        self.core = core
        self.client = client
        self.source = source
        """Address and port of the client."""
        self.header = header
        self.payload = b""
        self.verdict = _UNDECIDED
        self.client_ended = False
        """The client has sent FIN."""
        self.ended = _FAILED
        """How, and for a client without a backend the cause; the last one counts."""

    def outcome(self) -> Outcome:
        """How the client has ended without a backend."""
        if isinstance(self.client, HeaderlessSocket) and self.client.refused:
            return Outcome(Ending.HEADER)
        return Outcome(*self.ended)

    def read_payload(self) -> bool:
        """Read what the client has sent, unless that is done; False if the client is gone."""
        if self.payload or self.client_ended:
            return True
        core = self.core
        try:
            count = self.client.recv_into(core.buffer)
        except BlockingIOError:
            return True
        except OSError:
            return False
        # FIN: the client may still want to receive what the backend sends.
        if not count:
            self.client_ended = True
            return True
        self.payload = payload = bytes(core.view[:count])
        if payload[0] not in FIRST_BYTES:
            # True of nearly every client; calling judge() would cost each connection a microsecond.
            self.verdict = _NO_LOOP
        else:
            host, port = self.source
            self.verdict = judge(payload, core.clients, host=host, port=port)
        return True

    def send_first(self, backend: socket.SocketType) -> int:
        """Send header and payload to a backend in one send; returns how many bytes went. Raises OSError."""
        octets = self.header + self.payload
        if len(octets) > _ONE_SEGMENT:
            send_at_once(backend)
        # Also if there is nothing to send: while the socket still connects, this raises BlockingIOError.
        return backend.send(octets)

    @property
    def is_short(self) -> bool:
        """Header and payload left in one segment, and the backend's socket has no TCP_NODELAY yet."""
        return len(self.header) + len(self.payload) <= _ONE_SEGMENT
