"""The pool: the workers of one server, as the rest of the parent uses them: one server with one set of numbers.

The law: each worker has sockets of its own, which stay open here: the queries that wait for a dead or hung worker are
answered by its successor. A worker is replaced whatever its end was, until the drain. Without the spawner nobody could
be replaced, so its end is the end of the server.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.tap.filters import merge_filters
from dnsproxy.workers.forwarding import pack_forwarding
from dnsproxy.workers.inbox import receive
from dnsproxy.workers.member import Member
from dnsproxy.workers.messages import (
    FROM_SPAWNER,
    Begin,
    Drain,
    Ended,
    Forwarding,
    HostRows,
    Kill,
    Limits,
    Publish,
    Spawn,
    Spawned,
    Watch,
    Watched,
    frame,
)
from dnsproxy.workers.numbers import Place, PoolNumbers, SocketSet
from dnsproxy.workers.outbox import Outbox
from dnsproxy.workers.restarts import Pauses
from dnsproxy.workers.spawner import SpawnerProcess
from dnsproxy.workers.zone_desk import ZoneDesk
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_STARTING: Final = 10.0
"""Seconds to wait for the first sign of life of all workers before the server counts as started."""
_SETTLING: Final = 1.0
"""Seconds that a version may wait for a worker that reads slowly."""
_STATUS: Final = 1.0
"""Seconds to wait for the exit status of a worker, for the log."""

log = structlog.get_logger("dnsproxy.workers")


class WorkerPool:
    """The workers. `own` is a server without sockets, which asks upstreams for the parent itself."""

    def __init__(
        self,
        spawner: SpawnerProcess,
        *,
        workers: int,
        own: DnsServer,
        forwarding: ForwardSettings,
        connections: int,
        per_client: int,
        own_sockets: int,
    ) -> None:
        self.workers = workers
        self._own = own
        self._forwarding = forwarding
        self._forwards = ""
        self._connections = connections
        self._per_client = per_client
        self._own_sockets = own_sockets
        self._socket = trio.socket.from_stdlib_socket(_unblocked(spawner.socket))
        self._spawner = Outbox(self._socket)
        self.numbers = PoolNumbers(own)
        self._members: dict[int, Member] = {}
        """The living ones, and those whose exit status is awaited, by the numbers of their lives."""
        self._lives = 0
        self.version = 0
        """That of the last table."""
        self._draining = False
        self.zones = ZoneDesk(own)
        own.tap.on_change = self._tell_watch

    def replace_upstreams(self, forwarding: ForwardSettings) -> None:
        """See DnsServer."""
        self._forwarding = forwarding
        self._own.replace_upstreams(forwarding)
        self._tell_upstreams()

    def report_forwards(self, forwards: str) -> None:
        """See DnsServer."""
        self._forwards = forwards
        self._tell_upstreams()

    def feed(self, message: Begin | HostRows | Publish) -> None:
        """Send a part of the table to the spawner and to all workers."""
        octets = frame(message)
        self._spawner.post(octets)
        if isinstance(message, Publish):
            self.version = message.version
            self.numbers.note_published(message.version)
        for member in self.numbers.members:
            member.outbox.post(octets)

    async def settle(self) -> None:
        """Wait until the workers have nearly all rows that were fed, so that they show the next version with us.

        Not long: a worker that hangs must not keep the others from it.
        """
        with trio.move_on_after(_SETTLING):
            for member in self.numbers.members:
                if member.answering:
                    await member.outbox.wait_sent()

    async def run(
        self,
        sets: Sequence[SocketSet],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep one worker for each set of TCP and UDP sockets until cancelled. Raises StartError without a spawner."""
        places = self.numbers.places = [Place(number, each) for number, each in enumerate(sets, start=1)]
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._spawner.run)
                nursery.start_soon(self._own.run, (), ())
                for place in places:
                    nursery.start_soon(self._keep, place, nursery)
                nursery.start_soon(self._await_first, task_status)
                async for message in receive(self._socket, FROM_SPAWNER):
                    self._note(message)
                raise StartError("the process that starts workers has ended", status=ExitStatus.UNKNOWN)
        finally:
            self._socket.close()

    async def drain(self) -> None:
        """Let all workers answer their open queries; nobody is replaced from now on."""
        self._draining = True
        members = self.numbers.members
        for member in members:
            member.outbox.post(frame(Drain()))
        for member in members:
            await member.drained.wait()
        await self._own.drain()

    async def _await_first(self, task_status: trio.TaskStatus[None]) -> None:
        with trio.move_on_after(_STARTING):
            for place in self.numbers.places:
                await place.first.wait()
        task_status.started()

    async def _keep(self, place: Place, nursery: trio.Nursery) -> None:
        """Have one worker at a time at a place."""
        pauses = Pauses()
        while True:
            member = place.member = self._start(place)
            await member.run(
                on_hang=partial(self._end_hung, member),
                on_shown=self.numbers.forget_shown,
                on_zone=self.zones.taker(member, nursery),
                on_watched=self._note_watched,
            )
            self.numbers.remove(place, member)
            # Its process may live on, if it closed its socket by a fault.
            self._spawner.post(frame(Kill(member.worker)))
            if self._draining:
                return
            place.restarts += 1
            pause = pauses.after(trio.current_time() - member.started)
            with trio.move_on_after(_STATUS):
                await member.ended.wait()
            log.warning(
                "a worker ended and is replaced",
                worker=place.number,
                pid=member.process,
                status=member.status,
                pause_seconds=pause,
            )
            self._members.pop(member.worker, None)
            await trio.sleep(pause)

    def _start(self, place: Place) -> Member:
        self._lives += 1
        ours, theirs = socket.socketpair()
        member = Member(self._lives, _unblocked(ours), version=self.version, first=place.first)
        self._members[member.worker] = member
        limits = Limits(self._connections, self._per_client, place.unread_since, self._own_sockets)
        member.outbox.post(frame(limits))
        member.outbox.post(frame(self._pack_forwarding()))
        member.outbox.post(self.zones.introduction)
        if self._own.tap.listening:
            member.outbox.post(frame(self._watch()))
        spawn = Spawn(member.worker, place.number, len(place.streams), len(place.datagrams))
        descriptors = [one.fileno() for one in (theirs, *place.streams, *place.datagrams)]
        self._spawner.post(frame(spawn), descriptors, sent=theirs.close)
        return member

    def _end_hung(self, member: Member) -> None:
        log.warning("a worker gives no sign of life and is killed", pid=member.process)
        self._spawner.post(frame(Kill(member.worker)))

    def _note(self, message: Spawned | Ended) -> None:
        member = self._members.get(message.worker)
        if member is None:
            return
        if isinstance(message, Spawned):
            member.process = message.process
            member.spawned.set()
        else:
            member.status = message.status
            member.ended.set()

    def _pack_forwarding(self) -> Forwarding:
        return pack_forwarding(self._forwarding, forwards=self._forwards, workers=self.workers)

    def _tell_upstreams(self) -> None:
        octets = frame(self._pack_forwarding())
        for member in self.numbers.members:
            member.outbox.post(octets)

    def _watch(self) -> Watch:
        wanted = self._own.tap.wanted
        return Watch(merge_filters(wanted) if wanted else None)

    def _tell_watch(self) -> None:
        octets = frame(self._watch())
        for member in self.numbers.members:
            member.outbox.post(octets)

    def _note_watched(self, watched: Watched) -> None:
        self._own.tap.distribute(watched.seen, dropped=watched.dropped)


def _unblocked(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock
