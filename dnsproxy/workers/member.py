"""One life of a worker, as the parent sees it: its control socket, its signs of life and its numbers.

The law: it ends with the control socket, for whatever reason that closes.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import msgspec
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.replace.verdicts import LeadsTo, Led
from dnsproxy.workers.inbox import receive
from dnsproxy.workers.messages import FROM_WORKER, Ask, Beat, Drained, Hand, Notified, Shown, Watched
from dnsproxy.workers.outbox import Outbox
from dnsproxy.workers.restarts import MISSED
from dnsproxy.workers.worker import BEAT


class Handed(NamedTuple):
    """A connection of a worker that the parent is to serve."""

    descriptor: int
    received: bytes


ZoneMessage = Ask | Notified | Handed


class Member:
    """A worker from its start to its end."""

    def __init__(self, worker: int, control: socket.socket, *, version: int, first: trio.Event) -> None:
        self.worker = worker
        """The number of this life."""
        self.started = trio.current_time()
        self.process: int | None = None
        self.spawned = trio.Event()
        """Set when its process is known."""
        self.status: int | None = None
        """How its process ended."""
        self.ended = trio.Event()
        """Set when its status is known."""
        self.counters = Counters()
        self.outstanding = 0
        self.upstreams: list[UpstreamReport] = []
        self.led_counts: dict[LeadsTo, int] = {}
        self.asked_names = 0
        self.led: tuple[int, list[Led]] = 0, []
        """How often the names that lead elsewhere have changed, and these names."""
        self.shown = version
        """The version of the table that it answers from."""
        self.seen = perf_counter()
        """When it gave its last sign of life."""
        self.answering = False
        """Whether it has given one, and missed none since."""
        self._first = first
        self.drained = trio.Event()
        self._missed = 0
        self._socket = trio.socket.from_stdlib_socket(control)
        self.outbox = Outbox(self._socket)

    async def run(
        self,
        *,
        on_hang: Callable[[], None],
        on_shown: Callable[[], None],
        on_zone: Callable[[ZoneMessage], None],
        on_watched: Callable[[Watched], None],
    ) -> None:
        """Exchange messages until the worker has ended; `on_hang` is called once if it hangs. Closes the socket.

        `on_zone` gets what concerns zones: a query, a NOTIFY, or a connection; `on_watched` the queries for listeners.
        """
        descriptors: deque[int] = deque()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.outbox.run)
                nursery.start_soon(self._watch, on_hang)
                async for message in receive(self._socket, FROM_WORKER, descriptors=descriptors):
                    match message:
                        case Beat():
                            self._note(message)
                        case Shown(version):
                            self.shown = version
                            on_shown()
                        case Drained():
                            self.drained.set()
                        case Watched():
                            on_watched(message)
                        case Hand(received):
                            on_zone(Handed(descriptors.popleft(), received))
                        case _:
                            on_zone(message)
                nursery.cancel_scope.cancel()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            self.answering = False
            self.drained.set()
            self._first.set()
            self._socket.close()

    def _note(self, beat: Beat) -> None:
        self.counters, self.outstanding, self.upstreams = beat.counters, beat.outstanding, beat.upstreams
        self.led_counts, self.asked_names = beat.led_counts, beat.asked_names
        if beat.led is not None:
            self.led = self.led[0] + 1, beat.led
        self.seen = perf_counter()
        self._missed = 0
        self.answering = True
        self._first.set()

    async def _watch(self, on_hang: Callable[[], None]) -> None:
        """Count missed signs of life in turns of this loop: a parent that was stopped itself blames no worker.

        Nor is a worker to blame for a start that waits for the spawner, which may be reading a large table.
        """
        await self.spawned.wait()
        while self._missed <= MISSED:
            await trio.sleep(BEAT)
            self._missed += 1
            # One may be late by a little.
            self.answering = self.answering and self._missed <= 2  # noqa: PLR2004
        on_hang()


class WorkerState(msgspec.Struct, frozen=True):
    """What the page shows of one worker."""

    place: int
    process: int | None
    since: float
    """Seconds since its start."""
    restarts: int
    answering: bool
