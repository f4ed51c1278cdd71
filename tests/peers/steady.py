"""Steady questions to a DNS server during an event, and the outcome of each.

The law: a question is sent on schedule, whatever the outcome of earlier ones; each has its own socket and is asked
once, as by a pod that does not retry, so that every loss shows.
"""

from __future__ import annotations

import itertools
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.kit.datagram_drops import dropped_datagrams
from tests.kit.dns_server import read_message
from tests.kit.lag import Lag
from tests.kit.messages import query, read_dnspython
from tests.kit.upstream_replies import framed

RATE: Final = 200
"""Questions a second."""
TABLE_SUFFIX: Final = "apps.example.org"
"""Every second question is for a name below this one, the others are for other names."""
OUTSIDE_SUFFIX: Final = "www.example.org"

NOT_WAITED: Final = 2.0
"""Seconds that CoreDNS waits for one server: a faster reply did not wait for a dead or hanging one."""
LATE: Final = 2 * NOT_WAITED
"""Seconds after which a reply is late: CoreDNS has waited for a second server."""
_PROGRAMS: Final = 4
"""The programs on the path of a question: this test, CoreDNS, dnsproxy and the upstream. Each may be scheduled late."""
_PATIENCE: Final = 8.0
"""Seconds until a question counts as lost: CoreDNS itself gives up after five."""
_TCP_EVERY: Final = 10
"""Every tenth question uses TCP."""
_EVENT_SECONDS: Final = 30


@dataclass(frozen=True)
class Outcome:
    """The outcome of one question."""

    name: str
    transport: str
    seconds: float
    said: str
    """The address in the reply, otherwise the error."""

    @property
    def in_table(self) -> bool:
        """Whether the name belongs to the table."""
        return self.name.endswith(TABLE_SUFFIX)


def answered_with(address: str) -> Callable[[Outcome], bool]:
    """Questions for names of the table with this address as the answer."""
    return lambda outcome: outcome.in_table and outcome.said == address


def answered_at_once_with(address: str) -> Callable[[Outcome], bool]:
    """The same, if CoreDNS did not wait for a dead or hanging server."""
    return lambda outcome: answered_with(address)(outcome) and outcome.seconds < NOT_WAITED


@dataclass
class Tally:
    """All outcomes so far."""

    outcomes: list[Outcome] = field(default_factory=list)
    lag: Lag = field(default_factory=Lag)
    """The delay of our own schedule by the machine."""
    dropped_before: int = field(default_factory=dropped_datagrams)
    """As of dropped_datagrams() at the beginning."""
    _news: trio.Event = field(default_factory=trio.Event)

    def note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._news.set()
        self._news = trio.Event()

    async def wait_for(self, count: int, wanted: Callable[[Outcome], bool]) -> None:
        """Wait for this many more outcomes that match."""
        seen = len(self.outcomes)
        with trio.fail_after(_EVENT_SECONDS):
            while sum(map(wanted, self.outcomes[seen:])) < count:
                await self._news.wait()

    def said(self, *, in_table: bool) -> Counter[str]:
        """The number of each result, for names of the table or for the others."""
        return Counter(outcome.said for outcome in self.outcomes if outcome.in_table == in_table)

    @property
    def dropped(self) -> int:
        """The datagrams that full sockets lost since the beginning, anybody's."""
        return dropped_datagrams() - self.dropped_before

    def late(self) -> list[Outcome]:
        """Replies slower than the contract allows; delays of the whole machine are subtracted."""
        return [outcome for outcome in self.outcomes if outcome.seconds > LATE + _PROGRAMS * self.lag.longest]

    def unexpected(self, addresses: set[str]) -> list[str]:
        """A line for each outcome that is none of these addresses, with its place among the outcomes."""
        return [
            f"outcome {number} of {len(self.outcomes)}: {outcome}"
            for number, outcome in enumerate(self.outcomes)
            if outcome.said not in addresses
        ]

    def __str__(self) -> str:
        seconds = sorted(outcome.seconds for outcome in self.outcomes)
        return (
            f"{len(seconds)} questions; in the table: {dict(self.said(in_table=True))}; "
            f"outside: {dict(self.said(in_table=False))}; "
            f"median {seconds[len(seconds) // 2] * 1000:.1f} ms, slowest {seconds[-1]:.2f} s; "
            f"machine late by {self.lag.longest:.2f} s; full sockets lost {self.dropped} datagrams"
        )


@asynccontextmanager
async def asking(port: int, *, rate: float = RATE) -> AsyncIterator[Tally]:
    """Ask a loopback port during the block; at its end every question has its outcome."""
    tally = Tally()
    async with trio.open_nursery() as questions, trio.open_nursery() as clock:
        clock.start_soon(_ask_on_time, port, rate, tally, questions)
        clock.start_soon(tally.lag.watch)
        yield tally
        clock.cancel_scope.cancel()


async def _ask_on_time(port: int, rate: float, tally: Tally, questions: trio.Nursery) -> None:
    due = trio.current_time()
    for number in itertools.count():
        await trio.sleep_until(due)
        # After a stop of the whole machine, the missed questions all at once would fill CoreDNS's socket.
        due = max(due, trio.current_time() - 1 / rate) + 1 / rate
        suffix = OUTSIDE_SUFFIX if number % 2 else TABLE_SUFFIX
        # Half of the TCP questions are for each kind of name.
        transport = "TCP" if number // 2 % _TCP_EVERY == 0 else "UDP"
        questions.start_soon(_ask, port, f"h{number}.{suffix}", transport, tally)


async def _ask(port: int, name: str, transport: str, tally: Tally) -> None:
    begun = trio.current_time()
    said = "nothing"
    ask = _ask_stream if transport == "TCP" else _ask_datagram
    with trio.move_on_after(_PATIENCE):
        try:
            said = _read(await ask(port, query(name)))
        except (OSError, trio.BrokenResourceError) as error:
            said = repr(error)
    tally.note(Outcome(name, transport, trio.current_time() - begun, said))


async def _ask_datagram(port: int, message: bytes) -> bytes:
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        await client.connect(("127.0.0.1", port))
        await client.send(message)
        while True:
            reply = await client.recv(65535)
            # Replies to an earlier owner of our port are dropped, as every resolver does: CoreDNS asks itself to find a
            # loop, waits two seconds, and sends the reply after four while dnsproxy hangs.
            if reply[:2] == message[:2] and reply[12 : len(message)] == message[12:]:
                return reply


async def _ask_stream(port: int, message: bytes) -> bytes:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(framed(message))
        return await read_message(stream)


def _read(reply: bytes) -> str:
    if not reply:
        return "FIN"
    reading = read_dnspython(reply)
    addresses = sorted(str(row[3]) for row in reading.answers)
    return " ".join(addresses) or f"rcode {reading.rcode}"
