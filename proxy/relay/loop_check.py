"""The first words of a client that had not said enough when its backend was connected, lest it is one of our own.

The law: a hearing looks and takes nothing; the connection moves every octet, and the hearing ends with the first words
that are no header.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from proxy.backends.backend import OWN_LISTENER
from proxy.relay.clients import HEADERS, Words
from sidecar.poller import BROKEN, READABLE

if TYPE_CHECKING:
    from proxy.backends.backend import Backend
    from proxy.relay.connection import Connection
    from proxy.relay.side import Side


class Hearing:
    """Owns the client's side of a connection until it has said enough."""

    __slots__ = ("_connection", "_said", "_source", "_target")

    def __init__(self, connection: Connection, target: Backend, *, source: tuple[str, int], said: bytes) -> None:
        self._connection = connection
        self._target = target
        self._source = source
        self._said = said

    def handle(self, client: Side, events: int) -> None:
        """Take in an event mask of the client's socket, and hand it on."""
        connection = self._connection
        if events & BROKEN:
            # Looking would take the error that is the end's only mark.
            client.owner = connection
        elif events & READABLE and self._ends(client):
            return
        connection.handle(client, events)

    def close(self, *, reset: bool) -> None:
        """End the connection."""
        self._connection.close(reset=reset)

    def _ends(self, client: Side) -> bool:
        """Look at what the client says now; whether that ended the connection."""
        connection = self._connection
        try:
            self._said += client.sock.recv(HEADERS, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            connection.close(reset=True)
            return True
        host, port = self._source
        words = connection.relay.clients.look_at(self._said, host=host, port=port)
        if words is Words.HARMLESS:
            client.owner = connection
        elif words is Words.OURS:
            connection.relay.counters.backend_errors[OWN_LISTENER.cause] += 1
            self._target.observe(OWN_LISTENER)
            connection.close(reset=True)
        return words is Words.OURS
