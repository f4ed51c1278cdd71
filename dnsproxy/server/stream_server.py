"""DNS over TCP (RFC 7766): accepts connections up to the limits, and serves each to its end.

The law: connections are bounded in total and per client address, and a fault ends only the connection that caused it.
Without free descriptors only new connections wait.
"""

from __future__ import annotations

import errno
import math
from collections import Counter
from typing import Final

import structlog
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.server.stream_connection import TURNS, StreamConnection, StreamLimits, StreamService

_SPENT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""Errors of accept(2) for exhausted resources of the process or the system, which a connection does not cause."""
_PAUSE: Final = 0.1  # seconds; the connections wait in the kernel's queue
_COMPLAIN_EVERY: Final = 60.0


class StreamServer:
    """Serves connections, bounded in total and per client address."""

    def __init__(self, service: StreamService, *, counters: Counters, limits: StreamLimits) -> None:
        self._service = service
        self._counters = counters
        self._limits = limits
        self._clients: Counter[str] = Counter()
        self._connections: set[StreamConnection] = set()
        self._turns = trio.Semaphore(TURNS)
        self._stopping = False
        self._emptied = trio.Event()
        self._log = structlog.get_logger("dnsproxy.tcp")

    async def run(self, listener: trio.SocketListener) -> None:
        """Accept connections and serve them until cancelled."""
        complain_at = -math.inf
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    if error.errno not in _SPENT:
                        raise
                    if trio.current_time() >= complain_at:
                        # Once a minute: logging each attempt would slow the answers more than the shortage does.
                        complain_at = trio.current_time() + _COMPLAIN_EVERY
                        self._log.warning("cannot accept a connection; it waits", cause=error.strerror)
                    await trio.sleep(_PAUSE)
                else:
                    nursery.start_soon(self.serve, stream)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one accepted connection to its end."""
        client = _client_of(stream)
        full = self._clients.total() >= self._limits.connections
        if self._stopping or client is None or full or self._clients[client] >= self._limits.per_client:
            # A connection that is already gone was not refused.
            self._counters.tcp_refused += client is not None
            await trio.aclose_forcefully(stream)
            return
        self._clients[client] += 1
        self._counters.tcp_connections += 1
        connection = StreamConnection(stream, self._service, client=client, limits=self._limits, turns=self._turns)
        self._connections.add(connection)
        try:
            await connection.run()
        except Exception:  # noqa: BLE001  # a bug costs one connection; ending here would end the service of every client
            self._counters.failures += 1
            self._log.exception("a connection failed")
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._emptied.set()
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            await trio.aclose_forcefully(stream)

    async def drain(self) -> None:
        """Accept no more queries, and wait until all connections have ended, with FIN after their last reply."""
        self._stopping = True
        for connection in self._connections:
            connection.stop()
        if self._connections:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()


def _client_of(stream: trio.SocketStream) -> str | None:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None  # already gone
