"""DNS over TCP (RFC 7766): accepts connections up to the limits, and serves each to its end.

The law: connections are bounded in total and per client address, and a fault ends only the connection that caused it.
At a limit the connection that was idle for the longest time makes room for a new one (RFC 7766 section 6.2.3), so
clients that only keep connections open cannot exclude others; while none is idle, the new one is refused.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from operator import itemgetter
from typing import Final, NamedTuple

import structlog
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.server.stream_connection import TURNS, StreamConnection, StreamLimits, StreamService
from dnsproxy.server.transfer_frames import TRANSFERS
from sidecar.sockets.accepting import accept_connections

_ACCEPTING: Final = 1.0
"""Seconds to accept what waits at the end: a flood of connections must not outlast the drain."""


class _Accepting(NamedTuple):
    """A listener's task."""

    scope: trio.CancelScope
    own: bool
    """Whether the listener ends with this server."""


class StreamServer:
    """Serves connections, bounded in total and per client address."""

    def __init__(self, service: StreamService, *, counters: Counters, limits: StreamLimits) -> None:
        self._service = service
        self._counters = counters
        self._limits = limits
        self._clients: Counter[str] = Counter()
        self._connections: set[StreamConnection] = set()
        self._turns = trio.Semaphore(TURNS)
        self._transfers = trio.Semaphore(TRANSFERS)
        self._accepting: dict[trio.SocketListener, _Accepting] = {}
        self._stopping = False
        self._emptied = trio.Event()
        self._log = structlog.get_logger("dnsproxy.tcp")

    async def run(self, listener: trio.SocketListener, *, own: bool = True) -> None:
        """Accept connections and serve them until cancelled or drained; `own`: the listener ends with this server."""
        accepting = self._accepting[listener] = _Accepting(trio.CancelScope(), own)
        try:
            async with trio.open_nursery() as nursery:
                with accepting.scope:
                    await accept_connections(
                        listener, lambda stream: nursery.start_soon(self.serve, stream), name="dns"
                    )
        finally:
            del self._accepting[listener]
            self._note_end()

    async def serve(self, stream: trio.SocketStream, received: bytes = b"") -> None:
        """Serve one accepted connection to its end; `received`: what another process has received on it."""
        client, port = _client_of(stream) or (None, 0)
        if client is None or not self._has_room(client):
            # A connection that is already gone was not refused.
            self._counters.tcp_refused += client is not None
            await trio.aclose_forcefully(stream)
            return
        self._clients[client] += 1
        self._counters.tcp_connections += 1
        connection = StreamConnection(
            stream,
            self._service,
            client=client,
            port=port,
            limits=self._limits,
            turns=self._turns,
            transfers=self._transfers,
            received=received,
        )
        self._connections.add(connection)
        if self._stopping:
            connection.stop()
        try:
            await connection.run()
        except Exception:  # noqa: BLE001  # a bug costs one connection; ending here would end the service of every client
            self._counters.failures += 1
            self._log.exception("a connection failed")
        finally:
            self._connections.discard(connection)
            self._note_end()
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            await trio.aclose_forcefully(stream)

    def _has_room(self, client: str) -> bool:
        """Whether a client may have one more connection, if need be in place of an idle one."""
        if self._clients[client] >= self._limits.per_client:
            return self._evict(one for one in self._connections if one.client == client)
        if self._clients.total() >= self._limits.connections:
            return self._evict(self._connections)
        return True

    def _evict(self, connections: Iterable[StreamConnection]) -> bool:
        """End the one that has been idle for the longest time; False if all have work."""
        idle = [(one.idle_since, one) for one in connections if one.idle_since is not None]
        if idle:
            min(idle, key=itemgetter(0))[1].give_way()
            self._counters.tcp_evicted += 1
        return bool(idle)

    async def drain(self) -> None:
        """Accept no more queries, and wait until all connections have ended, with FIN after their last reply.

        Connections that the kernel has accepted are served too.
        """
        await self._stop_accepting()
        self._stopping = True
        for connection in self._connections:
            connection.stop()
        while self._connections or self._accepting:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()

    async def _stop_accepting(self) -> None:
        # Not once more: a listener that was shut down is readable for ever.
        accepting = self._accepting.items()
        own = [listener for listener, one in accepting if one.own and not one.scope.cancel_called]
        with trio.move_on_after(_ACCEPTING):
            # The kernel has no event for an empty queue.
            while True:
                if not any(listener.socket.is_readable() for listener in own):
                    break
                await trio.lowlevel.checkpoint()
        for listener in own:
            # Not close(): other processes of this server may have the socket open.
            with suppress(OSError):
                listener.socket.shutdown(socket.SHUT_RDWR)
        for one in self._accepting.values():
            one.scope.cancel()

    def _note_end(self) -> None:
        if not self._connections and not self._accepting:
            self._emptied.set()


def _client_of(stream: trio.SocketStream) -> tuple[str, int] | None:
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:
        return None  # already gone
    return str(host), int(port)
