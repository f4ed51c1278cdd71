"""The numbers of a pool: those of all its workers as one server's.

The law: it reads what the workers reported and changes nothing else. No count decreases when a worker ends.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from time import perf_counter

import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.table import HostTable
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.replace.verdicts import LeadsTo, Led
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.workers.member import Member, WorkerState
from dnsproxy.workers.totals import add_counters, merge_reports

SocketSet = tuple[Sequence[socket.socket], Sequence[socket.socket]]
"""The TCP and the UDP sockets of one worker."""


class Place:
    """One of the N workers: its sockets, and which process answers on them now."""

    def __init__(self, number: int, sockets: SocketSet) -> None:
        self.number = number
        self.streams, self.datagrams = sockets
        self.member: Member | None = None
        self.restarts = 0
        self.first = trio.Event()
        """Set when its first process has answered, or has ended."""
        self.unread_since = perf_counter()


class PoolNumbers:
    """The numbers of the workers and of `own`, the server that asks upstreams for the parent."""

    def __init__(self, own: DnsServer) -> None:
        self.places: list[Place] = []
        self._own = own
        self._before = Counters()
        """The sums of the workers that have ended."""
        self._published: deque[tuple[int, float]] = deque()
        """The versions that not all workers show, and when they were published."""

    @property
    def members(self) -> list[Member]:
        """The living workers."""
        return [place.member for place in self.places if place.member is not None]

    @property
    def table(self) -> HostTable:
        """The table, as the parent has it."""
        return self._own.table

    @property
    def counters(self) -> Counters:
        """The sums of all workers, living or not."""
        return add_counters([self._before, self._own.counters, *(one.counters for one in self.members)])

    @property
    def outstanding(self) -> int:
        """How many queries wait for an upstream."""
        return self._own.outstanding + sum(one.outstanding for one in self.members)

    @property
    def answering(self) -> int:
        """How many workers answer."""
        return sum(one.answering for one in self.members)

    @property
    def restarts(self) -> int:
        """How many workers were replaced."""
        return sum(one.restarts for one in self.places)

    @property
    def lag(self) -> float:
        """Seconds since the oldest version was published that a worker does not show yet; 0 if there is none."""
        return perf_counter() - self._published[0][1] if self._published else 0.0

    def upstream_reports(self) -> list[UpstreamReport]:
        """The state of each upstream: the worst that a worker reports."""
        return merge_reports([self._own.upstream_reports(), *(one.upstreams for one in self.members)])

    def led_counts(self) -> dict[LeadsTo, int]:
        """How many claimed names and types lead where, by the worker that knows the most."""
        counts = [one.led_counts for one in self.members]
        return {place: max((one.get(place, 0) for one in counts), default=0) for place in LeadsTo}

    def led(self) -> tuple[object, list[Led]]:
        """The claimed names that lead elsewhere, as any worker found, and what differs after each change of them."""
        found = {(one.name, one.rtype): one for member in self.members for one in member.led[1]}
        return tuple((member.worker, member.led[0]) for member in self.members), list(found.values())

    def asked_names(self) -> int:
        """How many claimed names were asked lately: all that lead elsewhere, and others by the worker with the most."""
        led = [{one.name for one in member.led[1]} for member in self.members]
        others = (member.asked_names - len(names) for member, names in zip(self.members, led, strict=True))
        return len(set().union(*led)) + max([0, *others])

    def states(self) -> list[WorkerState]:
        """The state of each worker."""
        now = trio.current_time()
        return [
            WorkerState(one.number, member.process, now - member.started, one.restarts, member.answering)
            for one in self.places
            if (member := one.member) is not None
        ]

    def remove(self, place: Place, member: Member) -> None:
        """Keep the counts of a worker that has ended."""
        place.member = None
        place.unread_since = member.seen
        self._before = add_counters([self._before, member.counters])
        self.forget_shown()

    def note_published(self, version: int) -> None:
        """Note that a version left for the workers. One that starts later has it from the beginning."""
        if not self.members:
            return
        self._published.append((version, perf_counter()))

    def forget_shown(self) -> None:
        """Forget the versions that all workers show."""
        shown = [member.shown for member in self.members]
        while self._published and (not shown or self._published[0][0] <= min(shown)):
            self._published.popleft()
