"""The tries of flights: which upstream a flight asks next, and over what.

The law: a flight asks each upstream so often and no more, and ends as soon as nothing can answer it any more. Datagrams
are posted while a batch is worked on and leave in flush(); streams have tasks, which end with the nursery.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.forward.completion import Completion
from dnsproxy.forward.deadlines import Step
from dnsproxy.forward.flight import Flight, StreamAttempt
from dnsproxy.forward.upstream import Upstream
from dnsproxy.forward.upstreams import Upstreams, ask_streams

_STREAMS: Final = 256  # flights that try TCP beside UDP at a time


class Attempts:
    """Asks upstreams for flights. Over streams only while `nursery` is there."""

    def __init__(self, upstreams: Upstreams, *, completion: Completion, counters: Counters) -> None:
        self.nursery: trio.Nursery | None = None
        """Where streams are asked, for a flight in the poller's hands can start no task of its own."""
        self._upstreams = upstreams
        self._completion = completion
        self._counters = counters
        self._posted: dict[Upstream, None] = {}
        self._streams = 0

    def flush(self) -> None:
        """Send what was posted, and what is posted because of that."""
        while self._posted:
            upstream, _ = self._posted.popitem()
            for flight in upstream.ports.flush():
                self.note_unreachable(flight)

    def take_step(self, flight: Flight) -> None:
        """Do what is due."""
        step = flight.next_step()
        if step is Step.GIVE_UP:
            self._completion.give_up(flight)
        elif step is Step.STREAM:
            self.try_tcp(flight)
        elif self._may_ask(flight):
            flight.count_miss()
            self._counters.forward_retries += 1
            self.ask_next(flight)

    def ask_again(self, flight: Flight) -> None:
        """Ask the next upstream before it is due."""
        if self._may_ask(flight):
            self._counters.forward_retries += 1
            self.ask_next(flight)

    def _may_ask(self, flight: Flight) -> bool:
        return flight.asked < self._upstreams.most_attempts * len(flight.route)

    def ask_next(self, flight: Flight) -> None:
        """Post to the next upstream that takes it."""
        route = flight.route
        most = self._upstreams.most_attempts * len(route)
        while flight.asked < most:
            upstream = route[flight.asked % len(route)]
            if flight.asked:
                flight.asked_at = trio.current_time()
            flight.asked += 1
            try:
                self._ask(flight, upstream)
            except OSError:
                self._counters.forward_errors += 1
                flight.unreachable = True
                continue
            self._counters.forward_sends += 1
            return
        if not flight.waits():
            self._completion.give_up(flight)

    def note_unreachable(self, flight: Flight) -> None:
        """An upstream cannot answer it: on to the next."""
        self._counters.forward_errors += 1
        flight.unreachable = True
        if not flight.done:
            self.ask_next(flight)

    def _ask(self, flight: Flight, upstream: Upstream) -> None:
        if not upstream.stream_only:
            upstream.ports.post(flight)
            self._posted[upstream] = None
        elif self.nursery is not None:
            self.nursery.start_soon(self._ask_stream, flight, upstream)

    async def _ask_stream(self, flight: Flight, upstream: Upstream) -> None:
        """One try over TCP or TLS; stands in the flight's tries like a datagram."""
        health = upstream.health
        mine = StreamAttempt(health, {b"": flight})
        flight.attempts += ((mine, b""),)
        reply = None
        with trio.move_on_at(flight.give_up) as waiting:
            reply = await upstream.pipeline.ask(flight.query)
        if flight.done:
            return
        if reply is not None:
            health.misses = 0
            self._completion.complete(flight, reply)
        elif not waiting.cancelled_caught:
            mine.waiting.clear()
            health.misses += 1
            self.note_unreachable(flight)
        self._flush_all()

    def try_tcp(self, flight: Flight) -> None:
        """TCP beside UDP, once: some paths lose UDP alone, and a forger cannot guess his way into a stream."""
        if self.nursery is None or self._streams >= _STREAMS or flight.streamed:
            return
        flight.streamed = True
        # The others were asked over a stream when it was their turn.
        beside = [upstream for upstream in flight.route if not upstream.stream_only]
        if beside:
            self._streams += 1
            self.nursery.start_soon(self._try_tcp, flight, beside)

    async def _try_tcp(self, flight: Flight, beside: Sequence[Upstream]) -> None:
        try:
            with trio.move_on_at(flight.give_up):
                reply = await ask_streams(beside, flight.query)
                if reply is not None and not flight.done:
                    self._completion.complete(flight, reply)
                    self._flush_all()
        finally:
            self._streams -= 1

    def _flush_all(self) -> None:
        self.flush()
        self._completion.flush()
