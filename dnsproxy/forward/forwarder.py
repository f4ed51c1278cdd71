"""Forwarding: each query that is not ours becomes a flight, and lands with a reply or with SERVFAIL in time.

The law: a flight is answered once, no later than GIVE_UP, because CoreDNS waits two seconds and then takes us for dead.
One upstream's silence sends the flight to the next at RETRY, an error at once; the first good reply wins. What waits is
bounded: beyond the cap, REFUSED (which no cache keeps).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
import trio

from dnsproxy import responder
from dnsproxy.counters import Counters, rcode_of
from dnsproxy.datagrams import DatagramPort, Sender
from dnsproxy.forward import replies
from dnsproxy.forward.flight import PROBE_GIVE_UP, RETRY, STREAM_AFTER, TICK, Flight
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.upstream import Upstream, UpstreamSocket
from dnsproxy.responder import Forward
from dnsproxy.wire import Query, Rcode
from sidecar.poller import Poller

_PROBE_EVERY = 0.5  # seconds between two looks at an upstream that is unwell
_STREAMS = 64  # TCP attempts at a time, so that dead upstreams cannot use up the descriptors
_NO_REACHABLE_AUTHORITY = 22  # extended DNS error codes (RFC 8914 section 4)
_NETWORK_ERROR = 23


Exchange = Callable[[Query], Awaitable[bytes | None]]
"""Asks an upstream over TCP: the reply, or None where none came."""


class Forwarder:
    """Keeps the flights of one server over one poller. A context manager that owns the upstream sockets."""

    def __init__(
        self, *, settings: ForwardSettings, poller: Poller, counters: Counters, exchange_stream: Exchange
    ) -> None:
        self._settings = settings
        self._counters = counters
        self._exchange_stream = exchange_stream
        self._upstreams = [
            Upstream(endpoint, poller=poller, arrived=self._arrived, broken=self._broken)
            for endpoint in settings.upstreams
        ]
        self._flights: dict[Flight, None] = {}
        self._departed = trio.Event()
        self._emptied = trio.Event()
        self._streams = 0
        self._nursery: trio.Nursery | None = None
        self._log = structlog.get_logger("dnsproxy.forwarder")

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        for upstream in self._upstreams:
            upstream.close()

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def upstreams(self) -> Sequence[Upstream]:
        """In the order of the settings."""
        return self._upstreams

    def depart(self, forward: Forward, port: DatagramPort, sender: Sender) -> bytes | None:
        """Send a query on its way; a reply of our own where it cannot be (overload)."""
        if len(self._flights) >= self._settings.outstanding:
            self._counters.forward_overload += 1
            return responder.refuse(forward.query, Rcode.REFUSED).message
        flight = Flight(forward, port, sender, route=self._order(), started=trio.current_time())
        if not self._flights:
            self._departed.set()
        self._flights[flight] = None
        self._try_next(flight)
        return None

    async def wait_empty(self) -> None:
        """Wait until no query is on its way."""
        if self._flights:
            if self._emptied.is_set():
                self._emptied = trio.Event()
            await self._emptied.wait()

    async def run(self) -> None:
        """Watch the clock over all flights until cancelled; the sockets are drained by the poller."""
        async with trio.open_nursery() as nursery:
            # Kept so that a flight in the poller's hands can start its TCP attempt; it lives no longer than run().
            self._nursery = nursery
            nursery.start_soon(self._probe_unwell)
            while True:
                if not self._flights:
                    self._departed = trio.Event()
                    await self._departed.wait()
                await trio.sleep(TICK)
                self._sweep(trio.current_time())

    async def _probe_unwell(self) -> None:
        """An upstream that has gone behind the others gets no queries that could show it well again: ask it."""
        while True:
            await trio.sleep(_PROBE_EVERY)
            async with trio.open_nursery() as probes:
                for upstream in self._upstreams:
                    if upstream.unwell:
                        probes.start_soon(partial(upstream.probe, timeout=_PROBE_EVERY))

    def _sweep(self, now: float) -> None:
        for flight in list(self._flights):
            if flight.started + PROBE_GIVE_UP > now:
                break  # they stand in the order of departure
            self._check(flight, now)
        for upstream in self._upstreams:
            upstream.close_retired()

    def _check(self, flight: Flight, now: float) -> None:
        if now >= flight.give_up:
            self._give_up(flight)
        elif now >= flight.retry_at:
            self._retry(flight)
        elif now >= flight.started + STREAM_AFTER and not flight.streamed:
            self._try_stream(flight)

    def _retry(self, flight: Flight) -> None:
        flight.retry_at += RETRY
        if flight.attempts < 2 * len(flight.route):
            flight.hold_silence_against()
            self._counters.forward_retries += 1
            self._try_next(flight)

    def _try_next(self, flight: Flight) -> None:
        """Send to the next upstream that takes it, each at most twice."""
        route = flight.route
        while flight.attempts < 2 * len(route):
            upstream = route[flight.attempts % len(route)]
            flight.attempts += 1
            try:
                sock = upstream.socket()
                flight.tries.append((sock, sock.send(flight)))
            except OSError:
                self._counters.forward_errors += 1
                flight.unreachable = True
                continue
            self._counters.forward_sends += 1
            return
        if not flight.waits():
            self._give_up(flight)

    def _order(self) -> list[Upstream]:
        """The upstreams, those that are unwell behind the others."""
        if not self._upstreams or not self._upstreams[0].unwell:
            return self._upstreams
        return sorted(self._upstreams, key=lambda upstream: upstream.unwell)

    def _try_stream(self, flight: Flight) -> None:
        if self._nursery is None or self._streams >= _STREAMS:
            return
        flight.streamed = True
        self._streams += 1
        self._nursery.start_soon(self._stream, flight)

    async def _stream(self, flight: Flight) -> None:
        try:
            with trio.move_on_at(flight.give_up):
                reply = await self._exchange_stream(flight.query)
                if reply is not None and flight in self._flights:
                    self._land(flight, reply)
        finally:
            self._streams -= 1

    def _arrived(self, sock: UpstreamSocket, reply: bytes) -> None:
        flight = sock.waiting.get(reply[:2])
        if flight is None or not replies.belongs(reply, flight.query.question):
            # Forged, late or malformed: the right reply may still come (RFC 5452 section 9.1).
            self._counters.forward_mismatches += 1
            return
        sock.upstream.misses = 0
        self._land(flight, reply)

    def _broken(self, sock: UpstreamSocket) -> None:
        """The kernel says that datagrams did not reach the server: let what waits there try the next one."""
        self._counters.forward_errors += 1
        sock.upstream.misses += 1
        waiting, sock.waiting = sock.waiting, {}
        # A flight that was tried again from the same port waits under two IDs.
        for flight in dict.fromkeys(waiting.values()):
            flight.unreachable = True
            self._try_next(flight)

    def _land(self, flight: Flight, reply: bytes) -> None:
        limit = replies.client_limit(flight.query)
        try:
            passed = replies.pass_on(reply, flight.query, shields=flight.forward.shields, limit=limit)
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
        error = _NETWORK_ERROR if flight.unreachable else _NO_REACHABLE_AUTHORITY
        self._counters.own_by_rcode[Rcode.SERVFAIL] += 1
        self._finish(flight, responder.refuse(flight.query, Rcode.SERVFAIL, extended_error=error).message)

    def _finish(self, flight: Flight, reply: bytes) -> None:
        del self._flights[flight]
        if not self._flights:
            self._emptied.set()
        flight.forget()
        self._counters.forward_seconds.observe(trio.current_time() - flight.started)
        flight.port.reply(reply, flight.sender)
