"""The tap of one server: where queries are noted, and the listeners that get them.

The law: without a listener a query costs one look at `listening`. Noting never waits: what a listener's queue has no
room for is dropped and counted there. Listeners together use at most a tenth of the time of this process, because what
they show must not slow what it shows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, TypeVar

import structlog
import trio

from dnsproxy.datagrams.port import ID, DatagramPort
from dnsproxy.dns.wire import HEADER, question_end
from dnsproxy.tap.filters import Matcher, TapFilter
from dnsproxy.tap.seen import Exchange, Outcome, Seen, outcome_of

QUEUE: Final = 4_096
"""Queries that wait for one listener; with their replies some 2 MB, and 6 at most for plain DNS over UDP."""
_OCTETS: Final = 8 << 20
"""Octets of the messages that wait for one listener: replies over TCP have up to 64 KiB."""
_CHUNK: Final = 64
"""Queries made ready in one turn: a fraction of a slice."""
_REST: Final = 10
"""The pause after a turn, as a multiple of its duration."""

Client = tuple[DatagramPort | None, Any]
"""Who asked: a port and a Sender of it; or None, and address and port of a TCP connection. Read when it is shown."""
Noted = tuple[float, float, Client, bytes, bytes, Outcome, Exchange | None]
"""The fields of a Seen, before the work that only a listener needs: a plain tuple, because each query makes one."""

T = TypeVar("T")


class Subscription:
    """One listener's queue."""

    def __init__(self, wanted: TapFilter, tap: Tap) -> None:
        self._tap = tap
        self._everything = wanted.is_everything
        self._matcher = Matcher(wanted)
        self._queue: deque[Noted | Seen] = deque()
        self._octets = 0
        self._arrived = trio.Event()
        self._dropped = 0

    @property
    def waiting(self) -> int:
        """How many queries are in the queue."""
        return len(self._queue)

    def take_dropped(self) -> int:
        """How many queries were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    async def receive(self, make: Callable[[Seen], T]) -> list[T]:
        """What `make` makes of the next queries, as soon as there is one."""
        while True:
            while not self._queue:
                self._arrived = trio.Event()
                await self._arrived.wait()
            await self._tap.wait_for_turn()
            if made := self._make(make):
                return made

    def _make(self, make: Callable[[Seen], T]) -> list[T]:
        begun = perf_counter()
        made = []
        for _ in range(min(_CHUNK, len(self._queue))):
            noted = self._queue.popleft()
            seen = noted if isinstance(noted, Seen) else self._tap.settle(noted)
            self._octets -= len(seen.query) + len(seen.reply)
            if self._matcher.wants_client(seen.client):
                made.append(make(seen))
        self._tap.spend(perf_counter() - begun)
        return made

    def offer(self, noted: Noted) -> None:
        """Keep a query if it is wanted and there is room."""
        if self._everything or self._matcher.wants_query(noted[3], noted[5]):
            self._keep(noted, len(noted[3]) + len(noted[4]))

    def offer_seen(self, seen: Seen) -> None:
        """The same, of a worker."""
        if self._everything or self._matcher.wants_query(seen.query, seen.outcome):
            self._keep(seen, len(seen.query) + len(seen.reply))

    def offer_batch(self, port: DatagramPort, replies: Sequence[bytes | None], now: float, seconds: float) -> None:
        """Keep the answered queries of a batch; `replies` are without their IDs, by position."""
        for position, reply in enumerate(replies):
            if reply is None:
                continue
            if self._everything and not self._has_room():
                # Not one by one: a full queue must cost nothing.
                self._dropped += sum(one is not None for one in replies[position:])
                return
            query = port.message(position)
            whole = query[:ID] + reply
            self.offer((now, seconds, (port, port.sender(position)), query, whole, outcome_of(whole), None))

    def drop(self, count: int) -> None:
        """Count queries that were dropped elsewhere."""
        self._dropped += count

    def _has_room(self) -> bool:
        return len(self._queue) < QUEUE and self._octets < _OCTETS

    def _keep(self, noted: Noted | Seen, octets: int) -> None:
        if not self._has_room():
            self._dropped += 1
            return
        if not self._queue:
            self._arrived.set()
        self._queue.append(noted)
        self._octets += octets


class Tap:
    """All listeners of one server. `rule_of` gives the row of the table for a lower-case wire name."""

    def __init__(self, rule_of: Callable[[bytes], str] = lambda _: "") -> None:
        self.listening = False
        """Whether anything must be noted."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when a listener came or went."""
        self._rule_of = rule_of
        self._subscriptions: dict[Subscription, TapFilter] = {}
        self._next_turn = 0.0
        self._log = structlog.get_logger("dnsproxy.tap")

    @property
    def wanted(self) -> tuple[TapFilter, ...]:
        """The filters of all listeners."""
        return tuple(dict.fromkeys(self._subscriptions.values()))

    @contextmanager
    def subscribe(self, wanted: TapFilter | None = None) -> Iterator[Subscription]:
        """A listener while the context lasts."""
        wanted = wanted or TapFilter()
        subscription = Subscription(wanted, self)
        self._subscriptions[subscription] = wanted
        self._changed()
        try:
            yield subscription
        finally:
            del self._subscriptions[subscription]
            self._changed()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001  # a bug here costs listeners a query, and no client its answer
            self._log.exception("a query was not shown")

    def _changed(self) -> None:
        self.listening = bool(self._subscriptions)
        self.on_change()

    def note_batch(self, port: DatagramPort, replies: Sequence[bytes | None], *, seconds: float) -> None:
        """Note the queries of a batch that were answered at once; `replies` are without their IDs, by position."""
        now = time.time()
        with self._alone():
            for subscription in self._subscriptions:
                subscription.offer_batch(port, replies, now, seconds)

    def note(
        self,
        client: Client,
        query: bytes,
        reply: bytes,
        outcome: Outcome,
        *,
        seconds: float,
        exchange: Exchange | None = None,
    ) -> None:
        """Note one query and its end; `reply` is empty if nothing was sent."""
        noted = (time.time(), seconds, client, query, reply, outcome, exchange)
        with self._alone():
            for subscription in self._subscriptions:
                subscription.offer(noted)

    def distribute(self, seen: Sequence[Seen], *, dropped: int) -> None:
        """Note what another process saw and dropped."""
        with self._alone():
            for subscription in self._subscriptions:
                subscription.drop(dropped)
                for one in seen:
                    subscription.offer_seen(one)

    def settle(self, noted: Noted) -> Seen:
        """The whole value of what was noted."""
        ended, seconds, (port, sender), query, reply, outcome, exchange = noted
        address, number = (port.host(sender), port.source_port(sender)) if port is not None else sender[:2]
        rule = ""
        if outcome is Outcome.TABLE and (end := question_end(query)):
            rule = self._rule_of(query[HEADER : end - 4].lower())
        return Seen(ended, seconds, port is not None, address, number, query, reply, outcome, rule, exchange)

    async def wait_for_turn(self) -> None:
        """Wait until the listeners have rested."""
        await trio.lowlevel.checkpoint()
        # Again, because another listener may have been first.
        while self._next_turn > trio.current_time():  # noqa: ASYNC110  # it waits for a time, not for a condition
            await trio.sleep_until(self._next_turn)

    def spend(self, seconds: float) -> None:
        """Count time that was used for a listener."""
        self._next_turn = max(self._next_turn, trio.current_time()) + _REST * seconds
