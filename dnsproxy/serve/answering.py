"""The part of a service that answers: the server of this process, or a pool of workers (--workers).

The law: with one worker this is the server and nothing else. With more, the server of this process has no sockets, and
only asks upstreams for the service itself. One worker imports nothing of a pool.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import trio

from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.datagrams.open import open_port
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.descriptor_shares import Shares
from dnsproxy.serve.metrics import AnsweringServer
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.serve.sockets import share_sockets
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.workers.numbers import PoolNumbers

if TYPE_CHECKING:
    from dnsproxy.workers.pool import WorkerPool
    from dnsproxy.workers.spawner import SpawnerProcess


@contextmanager
def spawner_for(settings: ServeSettings) -> Iterator[SpawnerProcess | None]:
    """The spawner of a server with several workers; None for one. For a process with one thread."""
    if settings.workers == 1:
        yield None
    else:
        from dnsproxy.workers.spawner import start_spawner  # noqa: PLC0415

        with start_spawner() as spawner:
            yield spawner


class Answering:
    """Answers by the table of `server` and forwards all other queries."""

    def __init__(self, settings: ServeSettings, shares: Shares, spawner: SpawnerProcess | None) -> None:
        self.forwarding = replace(settings.forwarding, source_ports=shares.source_ports)
        self.server = DnsServer(
            forwarding=self.forwarding,
            limits=StreamLimits(connections=shares.connections, per_client=shares.per_client),
        )
        self._settings = settings
        self._pool: WorkerPool | None = None
        if spawner is not None:
            from dnsproxy.workers.pool import WorkerPool  # noqa: PLC0415

            self._pool = WorkerPool(
                spawner,
                workers=settings.workers,
                own=self.server,
                forwarding=self.forwarding,
                connections=shares.connections,
                per_client=shares.per_client,
                own_sockets=len(settings.listen),
            )

    @property
    def numbers(self) -> AnsweringServer:
        """The numbers of all processes that answer."""
        return self._pool.numbers if self._pool else self.server

    @property
    def workers(self) -> PoolNumbers | None:
        """The numbers of the workers; None if this process answers."""
        return self._pool.numbers if self._pool else None

    def make_writer(self, ttl: int, never: tuple[str, ...]) -> TableWriter:
        """A writer whose tables reach the workers."""
        if self._pool is None:
            return TableWriter(ttl=ttl, never=never)
        from dnsproxy.workers.feed import FeedWriter  # noqa: PLC0415

        return FeedWriter(ttl=ttl, never=never, send=self._pool.feed, version=self._pool.version)

    @property
    def settle(self) -> Callable[[], Awaitable[None]] | None:
        """Waits until the rows that were written have reached the workers; None without workers."""
        return self._pool.settle if self._pool else None

    def replace_upstreams(self, forwarding: ForwardSettings) -> None:
        """See DnsServer."""
        (self._pool or self.server).replace_upstreams(forwarding)

    def report_forwards(self, forwards: str) -> None:
        """See DnsServer."""
        (self._pool or self.server).report_forwards(forwards)

    def pass_zones(self, zone: bytes, notified: tuple[bytes, ...]) -> None:
        """Have workers pass on what concerns a zone, empty for none, and the NOTIFYs of others to this process."""
        if self._pool is not None:
            self._pool.zones.serve(zone, notified)

    async def start(
        self,
        nursery: trio.Nursery,
        streams: Sequence[socket.socket],
        datagrams: Sequence[socket.socket],
        sockets: ExitStack,
    ) -> None:
        """Answer in the nursery of the service; further sockets go onto the stack. Returns when workers answer."""
        if self._pool is None:
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(stream)) for stream in streams]
            serve = partial(self.server.run, own=len(self._settings.listen))
            nursery.start_soon(serve, [open_port(bound) for bound in datagrams], listeners)
        else:
            await nursery.start(self._pool.run, share_sockets(self._settings, streams, datagrams, sockets))

    async def drain(self) -> None:
        """Answer all open queries; see DnsServer."""
        await (self._pool or self.server).drain()
