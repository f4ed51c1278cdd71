"""A worker: the process that answers on one set of sockets, from the table that the parent sends.

The law: it decides nothing: table, upstreams and the end come from the parent, and it ends when the parent has gone. A
version of the table is written in slices, and shown whole.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy.datagrams.open import open_port
from dnsproxy.server.dns_server import POLLED, DnsServer
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.workers.feed import FeedReader
from dnsproxy.workers.forwarding import unpack_forwarding
from dnsproxy.workers.inbox import receive
from dnsproxy.workers.messages import (
    FOR_WORKER,
    Beat,
    Begin,
    Drain,
    Drained,
    Forwarding,
    FromWorker,
    Hand,
    HostRows,
    Limits,
    Publish,
    Shown,
    Told,
    Watch,
    Zones,
    frame,
)
from dnsproxy.workers.outbox import Outbox
from dnsproxy.workers.remote_zones import RemoteZones, make_answer_notify
from dnsproxy.workers.watching import Watching
from sidecar.loop.host import run_hosted
from sidecar.loop.slices import in_slices

BEAT: Final = 0.5
"""Seconds between two signs of life."""


def run_worker(
    control: socket.socket,
    *,
    streams: Sequence[socket.socket],
    datagrams: Sequence[socket.socket],
    table: FeedReader,
    place: int,
) -> None:
    """Answer on bound and listening sockets until the control socket is closed. In a fork, outside any event loop."""
    structlog.contextvars.bind_contextvars(worker=place)
    for one in (control, *streams, *datagrams):
        one.setblocking(False)
    run_hosted(_Worker(control, table).run, streams, datagrams, batch=POLLED)


class _Worker:
    def __init__(self, control: socket.socket, table: FeedReader) -> None:
        self._control = trio.socket.from_stdlib_socket(control)
        self._table = table
        self._outbox = Outbox(self._control)
        self._led: object = None
        """What was told last of the names that lead elsewhere."""

    async def run(self, streams: Sequence[socket.socket], datagrams: Sequence[socket.socket]) -> None:
        """Serve from the first two messages on until the control socket is closed."""
        messages = receive(self._control, FOR_WORKER)
        limits, forwarding = await anext(messages), await anext(messages)
        if not isinstance(limits, Limits) or not isinstance(forwarding, Forwarding):
            raise TypeError("a worker's first messages are its limits and its upstreams")
        server = DnsServer(
            forwarding=unpack_forwarding(forwarding),
            limits=StreamLimits(connections=limits.connections, per_client=limits.per_client),
        )
        server.report_forwards(forwarding.forwards)
        server.table = self._table.table()
        gc.freeze()
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(one)) for one in streams]
        ports = [open_port(one) for one in datagrams]
        async with trio.open_nursery() as nursery:
            serve = partial(server.run, unread_since=limits.unread_since, own=limits.own)
            nursery.start_soon(serve, ports, listeners)
            nursery.start_soon(self._outbox.run)
            nursery.start_soon(self._beat, server)
            watching = Watching(server.tap, self._send, nursery)
            await in_slices(self._table.take_in())
            async for message in messages:
                match message:
                    case Begin() | HostRows():
                        self._table.pending.append(message)
                        await in_slices(self._table.take_in())
                    case Publish():
                        server.table = self._table.publish(message)
                        self._post(Shown(message.version))
                    case Forwarding():
                        server.replace_upstreams(unpack_forwarding(message))
                        server.report_forwards(message.forwards)
                    case Zones():
                        self._use_zones(message, server)
                    case Told():
                        if isinstance(server.zones, RemoteZones):
                            server.zones.told(message)
                    case Watch(wanted):
                        watching.watch(wanted)
                    case Drain():
                        nursery.start_soon(self._drain, server)
                    case _:
                        pass
            nursery.cancel_scope.cancel()

    def _use_zones(self, zones: Zones, server: DnsServer) -> None:
        server.zones = RemoteZones(zones.zone, self._post) if zones.zone else None
        server.answer_notify = make_answer_notify(zones.notified, self._post) if zones.notified else None
        server.give_stream = self._give_stream

    async def _give_stream(self, stream: trio.SocketStream, received: bytes) -> None:
        await self._outbox.send(frame(Hand(received)), [stream.socket.fileno()])

    async def _beat(self, server: DnsServer) -> None:
        while True:
            await self._send(self._make_beat(server))
            await trio.sleep(BEAT)

    def _make_beat(self, server: DnsServer) -> Beat:
        version, led = server.led()
        is_new, self._led = version != self._led, version
        reports, counts = server.upstream_reports(), server.led_counts()
        asked = server.asked_names()
        return Beat(server.counters, server.outstanding, reports, counts, asked, led if is_new else None)

    async def _drain(self, server: DnsServer) -> None:
        await server.drain()
        self._post(self._make_beat(server))
        self._post(Drained())

    def _post(self, message: FromWorker) -> None:
        self._outbox.post(frame(message))

    async def _send(self, message: FromWorker) -> None:
        """For messages that come again and again: nothing kills a parent that was stopped and reads none of them."""
        await self._outbox.send(frame(message))
