"""Forwarding: each query that is not ours becomes a flight, and lands with a reply or with SERVFAIL in time.

The law: a flight is answered once, no later than GIVE_UP, because CoreDNS waits two seconds and then takes us for dead.
One upstream's silence sends the flight to the next at RETRY, an error at once; the first good reply wins. Equal queries
are one flight (RFC 5452 section 5). What waits is bounded: beyond the caps, REFUSED (which no cache keeps).

Datagrams are posted while a batch is worked on and leave in flush(), which whoever worked on the batch calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from dnsproxy import responder
from dnsproxy.counters import Counters, rcode_of
from dnsproxy.datagrams import DatagramPort, Sender
from dnsproxy.forward import replies
from dnsproxy.forward.admission import Admission
from dnsproxy.forward.failures import Failures
from dnsproxy.forward.flight import IMPATIENT, PROBE_GIVE_UP, TICK, Flight, Recipient, Step, Try
from dnsproxy.forward.loop import LoopProbes
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.stream_forwarder import StreamForwarder
from dnsproxy.forward.upstream import Upstream
from dnsproxy.forward.upstream_socket import UpstreamSocket
from dnsproxy.forward.upstreams import Upstreams, ask_streams
from dnsproxy.responder import Forward
from dnsproxy.wire import Query, Rcode
from sidecar.poller import Poller

_STREAMS: Final = 256  # flights that try TCP beside UDP at a time
_STRAYS: Final = 8  # datagrams that answer nothing, after which a port's queries try TCP: somebody is guessing
_SLICE: Final = 32  # flights that are moved before the other tasks get their turn
_NO_REACHABLE_AUTHORITY = 22  # extended DNS error codes (RFC 8914 section 4)
_NETWORK_ERROR = 23
_CACHED_ERROR = 13


class Forwarder:
    """Keeps the flights of one server over one poller. A context manager that owns the upstream sockets."""

    def __init__(self, *, settings: ForwardSettings, poller: Poller, counters: Counters) -> None:
        self.admission = Admission(total=settings.outstanding, per_client=settings.per_client)
        self.loops = LoopProbes()
        self.upstreams = Upstreams(settings, poller=poller, receiver=self)
        self._failures = Failures()
        self.streams = StreamForwarder(
            self.upstreams,
            admission=self.admission,
            failures=self._failures,
            loops=self.loops,
            counters=counters,
        )
        self._poller = poller
        self._counters = counters
        self._flights: dict[bytes, Flight] = {}
        self._posted: dict[Upstream, None] = {}
        self._answered: dict[DatagramPort, None] = {}
        self._now = 0.0
        """The time of the batch that is worked on; 0 between batches."""
        self._departed = trio.Event()
        self._emptied = trio.Event()
        self._stream_tries = 0
        self._nursery: trio.Nursery | None = None
        self._log = structlog.get_logger("dnsproxy.forwarder")

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        self.upstreams.close()

    def __len__(self) -> int:
        return len(self.admission)

    async def run(self) -> None:
        """Drain the sockets and watch the clock over all flights until cancelled."""
        async with trio.open_nursery() as nursery:
            # Kept so that a flight in the poller's hands can start its TCP attempt; it lives no longer than run().
            self._nursery = nursery
            nursery.start_soon(partial(self._poller.run, after=self.flush))
            nursery.start_soon(self.upstreams.run, self.loops)
            while True:
                if not self._flights:
                    self._departed = trio.Event()
                    await self._departed.wait()
                await trio.sleep(TICK)
                await self._sweep(trio.current_time())

    async def wait_empty(self) -> None:
        """Wait until no query is on its way."""
        while self._flights:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()

    def depart(self, forward: Forward, port: DatagramPort, sender: Sender) -> bytes | None:
        """Send a query on its way, with the next flush(); a reply of our own where it cannot be."""
        query = forward.query
        message = query.message
        key = message[2:]
        flights = self._flights
        # What few queries meet is looked into apart; this method runs for every query that is not ours.
        if key in flights or self._failures.until or self.loops.out:
            reply = self._look_closer(query, key, port, sender)
            if reply is not None:
                return reply or None
        if not self.admission.admit(sender[2]):
            self._counters.forward_overload += 1
            return responder.refuse(query, Rcode.REFUSED).message
        now = self._now = self._now or trio.current_time()
        flight = Flight(forward, (port, sender, message[:2]), key, self.upstreams.route(), now)
        if not flights:
            self._departed.set()
        flights[key] = flight
        self._try_next(flight)
        return None

    def _look_closer(self, query: Query, key: bytes, port: DatagramPort, sender: Sender) -> bytes | None:
        """A reply to a query that does not depart, b"" where it waits with an equal one, None where it does depart."""
        if self.loops.caught(query.name):
            return responder.refuse(query, Rcode.REFUSED).message
        flight = self._flights.get(key)
        if flight is not None:
            return self._join(flight, (port, sender, query.message[:2]))
        if self._failures.holds(key, trio.current_time()):
            return self._fail(query, _CACHED_ERROR)
        return None

    def _join(self, flight: Flight, recipient: Recipient) -> bytes:
        """Let one more wait for a flight: b"", or a reply where that is too many."""
        _, sender, message_id = recipient
        again = flight.has(recipient)
        if not again:
            if not self.admission.admit(sender[2]):
                self._counters.forward_overload += 1
                return message_id + responder.refuse(flight.query, Rcode.REFUSED).message[2:]
            self._counters.forward_joined += 1
            flight.join(recipient)
        # A client that lost patience must not have to wait for a query that is lost (CVE-2020-25686's repair).
        if again or trio.current_time() - max(flight.started, flight.asked_at) >= IMPATIENT:
            self._ask_again(flight)
        return b""

    def flush(self) -> None:
        """Send what was posted: queries to the upstreams, replies to the clients."""
        while self._posted:
            upstream, _ = self._posted.popitem()
            for flight in upstream.ports.flush():
                self._note_unreachable(flight)
        for port in self._answered:
            port.flush()
        self._answered.clear()
        self._now = 0.0

    def _ask_again(self, flight: Flight) -> None:
        if flight.attempts < self.upstreams.most_tries * len(flight.route):
            self._counters.forward_retries += 1
            self._try_next(flight)

    async def _sweep(self, now: float) -> None:
        """Move all flights that are due, a slice at a time: thousands may be."""
        due = []
        for flight in self._flights.values():
            if flight.started + PROBE_GIVE_UP > now:
                break  # they stand in the order of departure
            if flight.due <= now:
                due.append(flight)
        for index, flight in enumerate(due, start=1):
            while not flight.landed and flight.due <= now:
                self._move(flight)
            if index % _SLICE == 0:
                self.flush()
                await trio.lowlevel.checkpoint()
        self.flush()
        self._failures.forget_old(now)
        self.upstreams.close_retired()

    def _move(self, flight: Flight) -> None:
        step = flight.next_step()
        if step is Step.GIVE_UP:
            self._give_up(flight)
        elif step is Step.STREAM:
            self._try_stream(flight)
        elif flight.attempts < self.upstreams.most_tries * len(flight.route):
            flight.hold_silence_against()
            self._counters.forward_retries += 1
            self._try_next(flight)

    def _try_next(self, flight: Flight) -> None:
        """Post to the next upstream that takes it."""
        route = flight.route
        most = self.upstreams.most_tries * len(route)
        while flight.attempts < most:
            upstream = route[flight.attempts % len(route)]
            if flight.attempts:
                flight.asked_at = trio.current_time()
            flight.attempts += 1
            try:
                self._ask(flight, upstream)
            except OSError:
                self._counters.forward_errors += 1
                flight.unreachable = True
                continue
            self._counters.forward_sends += 1
            return
        if not flight.waits():
            self._give_up(flight)

    def _ask(self, flight: Flight, upstream: Upstream) -> None:
        if not upstream.stream_only:
            upstream.ports.post(flight)
            self._posted[upstream] = None
        elif self._nursery is not None:
            self._nursery.start_soon(self._ask_stream, flight, upstream)

    async def _ask_stream(self, flight: Flight, upstream: Upstream) -> None:
        """One try over TCP or TLS; stands in the flight's tries like a datagram."""
        mine = Try(upstream, {b"": flight})
        flight.tries += ((mine, b""),)
        reply = None
        with trio.move_on_at(flight.give_up) as waiting:
            reply = await upstream.pipeline.ask(flight.query)
        if flight.landed:
            return
        if reply is not None:
            upstream.misses = 0
            self._land(flight, reply)
        elif not waiting.cancelled_caught:
            mine.waiting.clear()
            upstream.misses += 1
            self._note_unreachable(flight)
        self.flush()

    def _note_unreachable(self, flight: Flight) -> None:
        self._counters.forward_errors += 1
        flight.unreachable = True
        if not flight.landed:
            self._try_next(flight)

    def _try_stream(self, flight: Flight) -> None:
        if self._nursery is None or self._stream_tries >= _STREAMS or flight.streamed:
            return
        flight.streamed = True
        # The others were asked over a stream when it was their turn.
        beside = [upstream for upstream in flight.route if not upstream.stream_only]
        if beside:
            self._stream_tries += 1
            self._nursery.start_soon(self._stream, flight, beside)

    async def _stream(self, flight: Flight, beside: Sequence[Upstream]) -> None:
        """TCP beside UDP: some paths lose UDP alone, and a forger cannot guess his way into a stream."""
        try:
            with trio.move_on_at(flight.give_up):
                reply = await ask_streams(beside, flight.query)
                if reply is not None and not flight.landed:
                    self._land(flight, reply)
                    self.flush()
        finally:
            self._stream_tries -= 1

    def arrived(self, sock: UpstreamSocket, messages: list[bytes]) -> None:
        """See Receiver."""
        self._now = trio.current_time()
        waiting = sock.waiting
        for reply in messages:
            flight = waiting.pop(reply[:2], None)
            if flight is None:
                self._note_stray(sock)
            elif not replies.belongs(reply, flight.question):
                waiting[reply[:2]] = flight
                self._note_stray(sock)
            else:
                sock.upstream.misses = 0
                self._land(flight, reply)

    def _note_stray(self, sock: UpstreamSocket) -> None:
        """Forged, late or malformed: the right reply may still come (RFC 5452 section 9.1)."""
        self._counters.forward_mismatches += 1
        sock.strays += 1
        if sock.strays % _STRAYS == 0:
            for flight in list(sock.waiting.values()):
                self._try_stream(flight)

    def broken(self, sock: UpstreamSocket) -> None:
        """See Receiver: let what waits there try the next upstream."""
        sock.upstream.misses += 1
        waiting, sock.waiting = sock.waiting, {}
        # A flight that was tried again from the same port waits under two IDs.
        for flight in dict.fromkeys(waiting.values()):
            self._note_unreachable(flight)

    def _land(self, flight: Flight, reply: bytes) -> None:
        query = flight.query
        try:
            passed = replies.pass_on(reply, query, shields=flight.shields, limit=replies.client_limit(query))
        except Exception:  # noqa: BLE001  # one query may fail alone: raising here would end the loop that serves all
            self._counters.failures += 1
            self._log.exception("a reply failed", octets=len(reply))
            self._give_up(flight)
            return
        self._counters.upstream_by_rcode[rcode_of(passed)] += 1
        self._finish(flight, passed)

    def _give_up(self, flight: Flight) -> None:
        self._counters.forward_timeouts += 1
        flight.hold_silence_against()
        self._failures.add(flight.key, trio.current_time())
        error = _NETWORK_ERROR if flight.unreachable else _NO_REACHABLE_AUTHORITY
        self._finish(flight, self._fail(flight.query, error))

    def _fail(self, query: Query, extended_error: int) -> bytes:
        self._counters.own_by_rcode[Rcode.SERVFAIL] += 1
        return responder.refuse(query, Rcode.SERVFAIL, extended_error=extended_error).message

    def _finish(self, flight: Flight, reply: bytes) -> None:
        del self._flights[flight.key]
        flight.landed = True
        if not self._flights:
            self._emptied.set()
        flight.forget()
        self._counters.forward_seconds.observe((self._now or trio.current_time()) - flight.started)
        port, sender, _ = flight.recipient
        self.admission.release(sender[2])
        port.post(reply, sender)
        self._answered[port] = None
        if flight.others:
            self._answer_others(flight.others, reply)

    def _answer_others(self, others: Iterable[Recipient], reply: bytes) -> None:
        for port, sender, message_id in others:
            self.admission.release(sender[2])
            port.post(message_id + reply[2:], sender)
            self._answered[port] = None
