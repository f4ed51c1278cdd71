"""The attempts of flights: which upstream a flight asks next, and over UDP or a stream.

The law: a flight asks each upstream a limited number of times, and ends as soon as no reply can arrive any more.
Datagrams are posted while a batch is processed and leave in flush(); streams have tasks, which end with the nursery.
Tested in tests/dnsproxy/forward/test_forwarder.py and test_forwarder_ways.py.
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

_STREAMS: Final = 256  # flights that try TCP as well as UDP at one time


class Attempts:
    """Asks upstreams for flights. Streams are asked only while `nursery` is set."""

    def __init__(self, upstreams: Upstreams, *, completion: Completion, counters: Counters) -> None:
        self.nursery: trio.Nursery | None = None
        """Where streams are asked: the callbacks of the poller cannot start tasks of their own."""
        self._upstreams = upstreams
        self._completion = completion
        self._counters = counters
        self._posted: dict[Upstream, None] = {}
        self._streams = 0

    def flush(self) -> None:
        """Send the posted queries, and those that are posted because sending fails."""
        while self._posted:
            upstream, _ = self._posted.popitem()
            for flight in upstream.ports.flush():
                self.note_unreachable(flight)

    def take_step(self, flight: Flight) -> None:
        """Take the step that is due."""
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
        """Ask the next upstream before the next step is due."""
        if flight.is_open and self._may_ask(flight):
            self._counters.forward_retries += 1
            self.ask_next(flight)

    def _may_ask(self, flight: Flight) -> bool:
        return flight.asked < self._upstreams.most_attempts * len(flight.route)

    def ask_first(self, flight: Flight) -> None:
        """As ask_next, for a flight that was never asked, in less time if its upstream has an open outbox."""
        posting = flight.route[0].ports.posting if flight.route else None
        if posting is None:
            self.ask_next(flight)
            return
        flight.asked = 1
        posting.post(flight)
        self._counters.forward_sends += 1

    def ask_next(self, flight: Flight) -> None:
        """Post the query to the next upstream that accepts it."""
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
        """An upstream was unreachable for this flight: ask the next one."""
        self._counters.forward_errors += 1
        flight.unreachable = True
        if flight.is_open:
            self.ask_next(flight)

    def _ask(self, flight: Flight, upstream: Upstream) -> None:
        if not upstream.stream_only:
            # Before the post: ask_first adds to an outbox that flush() must know.
            self._posted[upstream] = None
            upstream.ports.post(flight)
        elif self.nursery is not None and not (upstream.pipeline.takes_one_query and flight.waits_for(upstream.health)):
            self.nursery.start_soon(self._ask_stream, flight, upstream)

    async def _ask_stream(self, flight: Flight, upstream: Upstream) -> None:
        """One attempt over TCP or TLS; it is listed in the attempts of the flight as a datagram is."""
        mine = StreamAttempt(upstream.health, {b"": flight})
        flight.attempts += ((mine, b""),)
        reply = None
        with trio.move_on_at(flight.give_up) as waiting:
            reply = await upstream.pipeline.ask(flight.query)
        if flight.done:
            return
        if reply is not None:
            self._completion.complete(flight, reply, upstream.endpoint, datagram=False)
        elif not waiting.cancelled_caught:
            mine.waiting.clear()
            self.note_unreachable(flight)
        self._flush_all()

    def try_tcp(self, flight: Flight) -> None:
        """TCP as well as UDP, once: some paths lose only UDP, and an attacker cannot guess their way into a stream."""
        if self.nursery is None or self._streams >= _STREAMS or flight.streamed:
            return
        flight.streamed = True
        # The other upstreams were asked over a stream when it was their turn.
        plain = [upstream for upstream in flight.route if not upstream.stream_only]
        if plain:
            self._streams += 1
            self.nursery.start_soon(self._try_tcp, flight, plain)

    async def _try_tcp(self, flight: Flight, plain: Sequence[Upstream]) -> None:
        try:
            with trio.move_on_at(flight.give_up):
                answered = await ask_streams(plain, flight.query)
                if answered is not None and not flight.done:
                    self._completion.complete(flight, answered.message, answered.endpoint, datagram=False)
                    self._flush_all()
        finally:
            self._streams -= 1

    def _flush_all(self) -> None:
        self.flush()
        self._completion.flush()
