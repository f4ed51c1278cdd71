"""The source ports for one upstream: a rotating set of connected UDP sockets.

The law: a query leaves from one of many random ports (RFC 5452 section 9.2); each is replaced by a new one after some
thousand queries, and closed after PORT_AGE, because an attacker needs time to find a port. At most `most` ports are in
use, and half as many wait for late replies. Queries that are posted together leave together, from one port, in one
system call.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Final

from dnsproxy.datagrams.connected import Batches
from dnsproxy.datagrams.port import ignore_path_mtu
from dnsproxy.forward.deadlines import PORT_AGE
from dnsproxy.forward.flight import Flight, Health
from dnsproxy.forward.upstream_socket import Receiver, UpstreamSocket
from sidecar.loop.poller import Poller
from sidecar.sockets.socket_address import family_of, socket_address
from sidecar.values.endpoints import Endpoint

SOCKETS: Final = 64
"""The most ports in use at one time."""
_USES = 4096  # queries from one port before it is replaced


class SourcePorts:
    """Opens, rotates and closes the sockets of one upstream."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        ids: Iterator[bytes],
        health: Health,
        poller: Poller,
        batches: Batches,
        receiver: Receiver,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` returns seconds; it is read when a port is opened and when old ones are retired, not for a query."""
        self._endpoint = endpoint
        self.most = SOCKETS if most is None else most
        """Ports in use at one time; may be changed, and surplus ports are closed when nothing waits there."""
        self._ids = ids
        self._health = health
        self._poller = poller
        self._batches = batches
        self._receiver = receiver
        self._clock = clock
        self.opened = False
        """Whether a query was ever sent over UDP."""
        self._sockets: list[UpstreamSocket] = []
        self._retired: list[UpstreamSocket] = []
        self.posting: UpstreamSocket | None = None
        """The socket with the outbox, while queries are posted that have not left."""
        self._next = 0

    @property
    def waiting(self) -> int:
        """How many replies the sockets wait for."""
        return sum(len(sock.waiting) for sock in self._sockets + self._retired)

    def post(self, flight: Flight) -> None:
        """Put a query into the outbox. Raises OSError if no socket can be opened."""
        posting = self.posting
        if posting is None:
            posting = self.posting = self._socket()
        posting.post(flight)

    def flush(self) -> list[Flight]:
        """Send the outbox; returns the flights whose query the kernel refused."""
        posting, self.posting = self.posting, None
        return posting.flush() if posting is not None else []

    def _socket(self) -> UpstreamSocket:
        """The socket for the next batch. Raises OSError if there is none."""
        if len(self._sockets) < self.most:
            try:
                self._sockets.append(self._open())
            except OSError:
                # Probably out of descriptors: the open sockets do as well.
                if not self._sockets:
                    raise
            else:
                return self._sockets[-1]
        self._next = (self._next + 1) % len(self._sockets)
        chosen = self._sockets[self._next]
        return self._renew(self._next) if chosen.uses >= _USES else chosen

    def _renew(self, index: int) -> UpstreamSocket:
        """Replace a port by a new one; if that fails, or many old ones still wait for replies, keep it."""
        if len(self._retired) > self.most // 2:
            return self._sockets[index]
        with contextlib.suppress(OSError):
            fresh = self._open()
            self._retired.append(self._sockets[index])
            self._sockets[index] = fresh
        return self._sockets[index]

    def retire_old(self) -> None:
        """Retire the ports older than PORT_AGE; the next queries open new ones, so an idle server has none.

        While many retired ports wait for replies, an old port with waiting replies stays in use.
        """
        oldest = self._clock() - PORT_AGE
        for sock in [one for one in self._sockets if one.opened_at <= oldest and one is not self.posting]:
            if not sock.waiting or len(self._retired) <= self.most // 2:
                self._sockets.remove(sock)
                self._retired.append(sock)
        self.close_retired()

    def close_retired(self) -> None:
        """Close the replaced and the surplus sockets that wait for no reply."""
        if self.posting is None:
            self._retired += self._sockets[self.most :]
            del self._sockets[self.most :]
        for done in [sock for sock in self._retired if not sock.waiting]:
            self._retired.remove(done)
            self._close(done)

    def close(self) -> None:
        """Close every socket."""
        for sock in self._sockets + self._retired:
            self._close(sock)
        self._sockets, self._retired, self.posting = [], [], None

    def _open(self) -> UpstreamSocket:
        sock = socket.socket(family_of(self._endpoint), socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            ignore_path_mtu(sock)
            sock.connect(socket_address(self._endpoint))
            opened = UpstreamSocket(
                sock,
                endpoint=self._endpoint,
                ids=self._ids,
                health=self._health,
                batches=self._batches,
                receiver=self._receiver,
                opened_at=self._clock(),
            )
            self._poller.add(sock.fileno(), opened.on_event, edge=False)
        except OSError:
            sock.close()
            raise
        self.opened = True
        return opened

    def _close(self, sock: UpstreamSocket) -> None:
        self._poller.remove(sock.sock.fileno())
        sock.sock.close()
