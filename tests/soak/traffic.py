"""All traffic of a soak on a server, in parallel, at a steady rate.

The law: an error of one kind of traffic ends no other kind, and all traffic ends with run(). Questions that a busy
machine delays are dropped, so that there are no bursts.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from tests.bench.dns import abuse
from tests.bench.dns.crowd import Crowd
from tests.kit.faulty_upstream import FaultyUpstream, silence
from tests.kit.upstream_replies import framed
from tests.soak.connections import MOST_PIPELINED, Connections
from tests.soak.datagrams import Datagrams
from tests.soak.questions import format_hosts, malformed_message, outside_question, table_question
from tests.soak.tally import Kind, Result, Tally

TICK: Final = 0.02
"""Seconds between two ticks of the schedule."""
TABLE_SHARE, OUTSIDE_SHARE, STREAM_SHARE, MALFORMED_SHARE = 0.55, 0.25, 0.12, 0.08
"""Shares of the rate."""
DROPPED_SHARE: Final = 0.005
"""Connections per second that are opened and dropped, in addition to the rate."""
KEPT: Final = 4
"""Long-lived connections with occasional questions."""
SLOW, UNREAD = 12, 2
"""Connections that send one octet per second, and connections that send much and read nothing."""
SWAP_EVERY: Final = 3.0
OUTAGE_EVERY, OUTAGE = 60.0, 5.0
"""Seconds between the starts of two outages of upstreams, and the duration of each."""
_FLOOD: Final = 100_000
"""Queries on a connection that is not read: more than all buffers hold, so that the server cuts it off."""
_ENDLESS: Final = 1 << 40


@dataclass(frozen=True)
class Site:
    """The server, its upstreams and its hosts file."""

    port: int
    hosts: Path
    upstreams: tuple[FaultyUpstream, ...]
    """In the order in which the server asks them."""


class Traffic:
    """The traffic on one server."""

    def __init__(self, site: Site, *, rate: float, tally: Tally, chance: random.Random) -> None:
        self._site = site
        self._rate = rate
        self._tally = tally
        self._chance = chance
        self._datagrams = Datagrams(site.port, tally, chance)
        self._connections = Connections(site.port, tally, chance)

    async def run(self) -> None:
        """Run until cancelled."""
        connections = self._connections
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._datagrams.run)
            nursery.start_soon(self._ask_datagrams)
            nursery.start_soon(self._send_malformed)
            conversations = self._rate * STREAM_SHARE / ((1 + MOST_PIPELINED) / 2)
            nursery.start_soon(self._start_often, connections.converse, conversations)
            nursery.start_soon(self._start_often, connections.drop, self._rate * DROPPED_SHARE)
            for _ in range(KEPT):
                nursery.start_soon(connections.keep)
            nursery.start_soon(self._crowd)
            nursery.start_soon(self._swap_hosts)
            nursery.start_soon(self._make_outages)
            nursery.start_soon(self._forget_what_upstreams_were_asked)

    async def _ask_datagrams(self) -> None:
        table, outside = Due(self._rate * TABLE_SHARE), Due(self._rate * OUTSIDE_SHARE)
        clock = Clock(TICK)
        while True:
            await clock.tick()
            for _ in range(table.take()):
                self._datagrams.ask(table_question(self._chance))
            for _ in range(outside.take()):
                self._datagrams.ask(outside_question(self._chance))

    async def _send_malformed(self) -> None:
        malformed, sender = Due(self._rate * MALFORMED_SHARE), abuse.Datagrams(self._site.port)
        with sender.socket:
            clock = Clock(TICK)
            while True:
                await clock.tick()
                for _ in range(malformed.take()):
                    sender.send(malformed_message(self._chance))
                    self._tally.note(Kind.MALFORMED, Result.RIGHT)
                sender.discard()

    async def _start_often(self, block: Callable[[], Awaitable[None]], rate: float) -> None:
        due = Due(rate)
        async with trio.open_nursery() as nursery:
            clock = Clock(TICK)
            while True:
                await clock.tick()
                for _ in range(due.take()):
                    nursery.start_soon(block)

    async def _crowd(self) -> None:
        """Connections that cost the server time and memory and never complete."""
        question = framed(table_question(self._chance).message)
        port = self._site.port
        with (
            Crowd(port, size=SLOW, octets=lambda: question, most=_ENDLESS) as slow,
            Crowd(port, size=UNREAD, octets=lambda: question * _FLOOD, most=_ENDLESS) as unread,
        ):
            clock = Clock(1.0)
            while True:
                await clock.tick()
                slow.press(1)
                unread.press(1 << 16)
                self._tally.events["slow connections"] = slow.opened
                self._tally.events["connections that read nothing"] = unread.opened

    async def _swap_hosts(self) -> None:
        for version in itertools.count(1):
            await trio.sleep(SWAP_EVERY)
            replace_hosts(self._site.hosts, version)
            self._tally.events["hosts files"] += 1

    async def _make_outages(self) -> None:
        """Outages of all upstreams and of only the first, in turns.

        With all of them silent, the number of waiting queries reaches its maximum: memory peaks in the warm-up, and not
        when the machine happens to be busy.
        """
        for number in itertools.count():
            await trio.sleep(OUTAGE_EVERY - OUTAGE)
            out = self._site.upstreams[: 1 if number % 2 else None]
            well = [(upstream.datagrams, upstream.streams) for upstream in out]
            for upstream in out:
                upstream.datagrams = upstream.streams = silence
            await trio.sleep(OUTAGE)
            for upstream, (datagrams, streams) in zip(out, well, strict=True):
                upstream.datagrams, upstream.streams = datagrams, streams
            self._tally.events["outages of one upstream" if number % 2 else "outages of all upstreams"] += 1

    async def _forget_what_upstreams_were_asked(self) -> None:
        """They record every query, for tests; here that would only fill our own memory."""
        clock = Clock(1.0)
        while True:
            await clock.tick()
            for upstream in self._site.upstreams:
                self._tally.events["upstream datagrams"] += len(upstream.asked_datagrams)
                self._tally.events["upstream stream queries"] += len(upstream.asked_streams)
                upstream.asked_datagrams.clear()
                upstream.asked_streams.clear()


def replace_hosts(path: Path, version: int) -> None:
    """Replace the hosts file atomically by another version."""
    fresh = path.with_suffix(".new")
    fresh.write_text(format_hosts(version))
    os.replace(fresh, path)


class Clock:
    """Ticks of a steady clock that starts now; late ticks are skipped."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._begun = trio.current_time()
        self._number = 0

    async def tick(self) -> None:
        """Wait for the next tick."""
        past = int((trio.current_time() - self._begun) / self._every)
        # Never the same tick twice, if rounding wakes us slightly early.
        self._number = max(self._number, past) + 1
        await trio.sleep_until(self._begun + self._number * self._every)


class Due:
    """The number of items due at a rate per second; at most one tick's worth at a time."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._rest = 0.0

    def take(self) -> int:
        self._rest += self._rate * TICK
        count = int(self._rest)
        self._rest -= count
        return count
