"""Finds a relay loop: a connection of this relay that has come back to it as a client.

The law: a loop shows in a client's first bytes, which then are a PROXY header that names another client of this relay.
The check reads ahead and consumes nothing; the connection moves every byte. The check ends with the first bytes that
cannot be a header.
"""

from __future__ import annotations

import socket
from enum import Enum
from typing import TYPE_CHECKING, Final

from proxy.header.addresses import BadHeader
from proxy.header.protocol import parse_header
from proxy.header.v1 import MAXIMUM_V1
from proxy.header.v2 import SIGNATURE_V2
from proxy.tap.ended import Ending
from sidecar.loop.poller import BROKEN, READABLE
from sidecar.values.endpoints import Endpoint

if TYPE_CHECKING:
    from proxy.relay.connection import Connection
    from proxy.relay.core import Core
    from proxy.relay.limits import Clients
    from proxy.relay.side import Side

_PREFIXES: Final = (b"PROXY ", SIGNATURE_V2)
FIRST_BYTES: Final = frozenset(prefix[0] for prefix in _PREFIXES)
"""The first byte of every header; a client that begins with another one needs no check."""
_MOST_HEADERS: Final = 16
"""Only a ring of relays puts this many headers one behind the other."""
PEEK_BYTES: Final = _MOST_HEADERS * MAXIMUM_V1
"""The most that these headers take."""
LOOP: Final[tuple[Ending, str]] = (Ending.HEADER, "")
"""How a client ends whose header is that of another connection."""


class Verdict(Enum):
    """What a client's first bytes show."""

    LOOP = "the header of another connection of this relay"
    NO_LOOP = "anything else"
    UNDECIDED = "nothing, or headers alone, and more may follow"


def judge(received: bytes, clients: Clients, *, host: str, port: int) -> Verdict:
    """Judge the first bytes of the client `host`, `port`.

    In a loop they begin with a header that names another connected client. In a ring of relays the headers stand one
    behind the other. _MOST_HEADERS of them count as a loop even if none names a connected client, because the close of
    the first round may run behind the next rounds and never catch up. A client can forge this, and is refused then.
    A header that names its own sender does not count, so that senders of PROXY headers are relayed.
    """
    if received and not received.startswith(_PREFIXES) and not any(one.startswith(received) for one in _PREFIXES):
        return Verdict.NO_LOOP
    sources, more = _sources(received)
    if len(sources) >= _MOST_HEADERS:
        return Verdict.LOOP
    if any(source != Endpoint(host, port) and clients.has(source.host, source.port) for source in sources):
        return Verdict.LOOP
    return Verdict.UNDECIDED if more and len(received) < PEEK_BYTES else Verdict.NO_LOOP


def _sources(received: bytes) -> tuple[list[Endpoint], bool]:
    """The sources that the leading headers name, and whether another header may follow."""
    found: list[Endpoint] = []
    for _ in range(_MOST_HEADERS):
        try:
            parsed = parse_header(received)
        except BadHeader:
            return found, False
        if parsed is None:
            return found, True
        if parsed.header.source is not None:
            found.append(parsed.header.source)
        received = received[parsed.length :]
    return found, False


class LoopCheck:
    """Owns the client's side of a connection whose first bytes were undecided when its backend was connected.

    While a full backend keeps peeked bytes waiting, it owns the backend's side too, so that each byte is counted once,
    whichever event moves it.
    """

    __slots__ = ("_connection", "_core", "_moved", "_source", "_waiting")

    def __init__(self, core: Core, connection: Connection, *, source: tuple[str, int], received: bytes) -> None:
        self._core = core
        self._connection = connection
        self._source = source
        self._moved = received
        """The client's bytes that have been moved to the backend."""
        self._waiting = b""
        """The bytes behind them, as of the last peek."""

    def handle(self, side: Side, events: int) -> None:
        """Inspect the client's bytes, and pass the event on to the connection."""
        connection = self._connection
        if side is connection.client:
            if events & BROKEN:
                # A peek would consume the socket's error, which is the only trace of a reset.
                self._release()
            elif events & READABLE and self._ends(side):
                return
        counters = self._core.counters
        before = counters.octets_to_backend
        connection.handle(side, events)
        if connection.client.owner is self:
            self._note_moved(counters.octets_to_backend - before)

    def close(self, *, reset: bool) -> None:
        """Close the connection."""
        self._connection.close(reset=reset)

    def _ends(self, client: Side) -> bool:
        """Peek at the client's bytes; whether that ended the connection."""
        try:
            self._waiting = client.sock.recv(PEEK_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            self._connection.ended = (Ending.CLIENT_RESET, "")
            self._connection.close(reset=True)
            return True
        host, port = self._source
        verdict = judge(self._moved + self._waiting, self._core.clients, host=host, port=port)
        if verdict is Verdict.NO_LOOP:
            self._release()
        elif verdict is Verdict.LOOP:
            self._core.note_loop(host)
            self._connection.ended = LOOP
            self._connection.close(reset=True)
        return verdict is Verdict.LOOP

    def _note_moved(self, count: int) -> None:
        if count > len(self._waiting):
            # Bytes that arrived after the peek have been moved unseen, so there is nothing left to judge.
            self._release()
            return
        self._moved += self._waiting[:count]
        self._waiting = self._waiting[count:]
        self._connection.backend.owner = self if self._waiting else self._connection

    def _release(self) -> None:
        connection = self._connection
        connection.client.owner = connection.backend.owner = connection
