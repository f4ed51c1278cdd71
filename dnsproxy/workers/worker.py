"""A worker: the process that answers on one set of sockets, from the table that the parent sends.

The law: it decides nothing: table, upstreams and the end come from the parent, and it ends when the parent has gone. A
version of the table is written in slices, and shown whole.
"""

from __future__ import annotations

import array
import gc
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import msgspec
import structlog
import trio

from dnsproxy.datagrams.open import open_port
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.workers.feed import FeedReader
from dnsproxy.workers.forwarding import unpack_forwarding
from dnsproxy.workers.messages import (
    FOR_WORKER,
    Beat,
    Begin,
    Drain,
    Drained,
    Forwarding,
    Frames,
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
from dnsproxy.workers.remote_zones import RemoteZones, make_answer_notify
from dnsproxy.workers.watching import Watching
from sidecar.loop.slices import in_slices

BEAT: Final = 0.5
"""Seconds between two signs of life."""
_CHUNK: Final = 1 << 14
"""Octets received in one call: rows whose decoding takes a fraction of a slice."""
_INT: Final = array.array("i").itemsize
_ROOM: Final = socket.CMSG_SPACE(16 * _INT)
M = TypeVar("M")


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
    trio.run(_Worker(control, table).run, streams, datagrams)


async def receive(sock: trio.socket.SocketType, decoder: msgspec.msgpack.Decoder[M]) -> AsyncIterator[M]:
    """The messages on a stream socket until the other end is closed."""
    frames = Frames()
    while True:
        try:
            octets = await sock.recv(_CHUNK)
        except ConnectionError:
            return
        if not octets:
            return
        for message in frames.feed(octets, decoder):
            yield message


async def receive_with_descriptors(
    sock: trio.socket.SocketType, decoder: msgspec.msgpack.Decoder[M], descriptors: deque[int]
) -> AsyncIterator[M]:
    """The same, and the descriptors that come with messages, in their order."""
    frames = Frames()
    while True:
        try:
            octets, ancillary, _, _ = await sock.recvmsg(_CHUNK, _ROOM)
        except ConnectionError:
            return
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.extend(array.array("i", data[: len(data) // _INT * _INT]))
        if not octets:
            return
        for message in frames.feed(octets, decoder):
            yield message


class _Worker:
    def __init__(self, control: socket.socket, table: FeedReader) -> None:
        self._control = trio.socket.from_stdlib_socket(control)
        self._table = table
        self._sending = trio.Lock()

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
            nursery.start_soon(partial(server.run, ports, listeners, unread_since=limits.unread_since))
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
                        nursery.start_soon(self._send, Shown(message.version))
                    case Forwarding():
                        server.replace_upstreams(unpack_forwarding(message))
                        server.report_forwards(message.forwards)
                    case Zones():
                        self._use_zones(message, server, nursery)
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

    def _use_zones(self, zones: Zones, server: DnsServer, nursery: trio.Nursery) -> None:
        def send(message: FromWorker) -> None:
            nursery.start_soon(self._send, message)

        server.zones = RemoteZones(zones.zone, send) if zones.zone else None
        server.answer_notify = make_answer_notify(zones.notified, send) if zones.notified else None
        server.give_stream = self._give_stream

    async def _give_stream(self, stream: trio.SocketStream, received: bytes) -> None:
        await self._send(Hand(received), stream.socket.fileno())

    async def _beat(self, server: DnsServer) -> None:
        while True:
            await self._send(Beat(server.counters, server.outstanding, server.upstream_reports()))
            await trio.sleep(BEAT)

    async def _drain(self, server: DnsServer) -> None:
        await server.drain()
        await self._send(Beat(server.counters, server.outstanding, server.upstream_reports()))
        await self._send(Drained())

    async def _send(self, message: FromWorker, descriptor: int | None = None) -> None:
        octets = memoryview(frame(message))
        async with self._sending:
            # When the parent has gone, run() ends.
            with suppress(ConnectionError):
                if descriptor is not None:
                    # It goes with the first octet.
                    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
                    octets = octets[await self._control.sendmsg([octets], ancillary) :]
                while octets:
                    octets = octets[await self._control.send(octets) :]
