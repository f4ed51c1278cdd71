"""Forwarding: each query that the table does not answer becomes a flight, and ends with a reply or SERVFAIL in time.

The law: a flight is answered once, at GIVE_UP at the latest, because CoreDNS waits two seconds and then treats this
server as dead. If an upstream is silent, the next one is asked at RETRY, earlier if there are many; after an error, at
once; the first good reply wins. Equal queries share one flight (RFC 5452 section 5). The number of waiting queries is
bounded: beyond the limits a query gets REFUSED, which no cache keeps.

Datagrams are posted while a batch is processed and leave in flush(), which the code that processed the batch calls.
Here flights start and replies arrive; attempts.py asks the upstreams, completion.py answers the clients, deadlines.py
has the times.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Forward, refuse
from dnsproxy.datagrams.port import DatagramPort, Sender
from dnsproxy.dns.wire import CACHED_ERROR, Query, Rcode
from dnsproxy.forward import replies
from dnsproxy.forward.admission import Admission, Failures
from dnsproxy.forward.attempts import Attempts
from dnsproxy.forward.completion import Completion
from dnsproxy.forward.deadlines import HURRIED_RETRY, IMPATIENT, TICK
from dnsproxy.forward.flight import Flight, Recipient
from dnsproxy.forward.loop import SUFFIX, LoopProbes
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.stream_forwarder import StreamForwarder
from dnsproxy.forward.upstream_socket import UpstreamSocket
from dnsproxy.forward.upstreams import Upstreams
from dnsproxy.forward.verification import Verification
from dnsproxy.tap.hub import Tap
from sidecar.loop.poller import Poller

_STRAYS: Final = 8  # datagrams that answer nothing, after which the queries of a port try TCP: it may be an attack
_SLICE: Final = 32  # flights that take a step before the other tasks get their turn


class Forwarder:
    """The forwarder of one server, on one poller. A context manager that owns the upstream sockets."""

    def __init__(self, *, settings: ForwardSettings, poller: Poller, counters: Counters, tap: Tap) -> None:
        self.admission = Admission(total=settings.outstanding, per_client=settings.per_client)
        self.loops = LoopProbes()
        self.upstreams = Upstreams(settings, poller=poller, receiver=self)
        self.verification = Verification(self.upstreams, counters=counters)
        self._failures = Failures()
        self.streams = StreamForwarder(
            self.upstreams,
            admission=self.admission,
            failures=self._failures,
            loops=self.loops,
            verification=self.verification,
            counters=counters,
            tap=tap,
        )
        self._poller = poller
        self._counters = counters
        self._completion = Completion(
            admission=self.admission,
            failures=self._failures,
            verification=self.verification,
            counters=counters,
            tap=tap,
        )
        self._attempts = Attempts(self.upstreams, completion=self._completion, counters=counters)
        self._flights = self._completion.flights
        self._started = trio.Event()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        self.upstreams.close()

    def __len__(self) -> int:
        return len(self.admission)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive replies and take the steps of all flights until cancelled."""
        async with trio.open_nursery() as nursery:
            # It ends with run().
            self._attempts.nursery = self._completion.nursery = self.verification.nursery = nursery
            nursery.start_soon(partial(self._poller.run, after=self.flush))
            nursery.start_soon(self.upstreams.run, self.loops)
            task_status.started()
            while True:
                if not self._flights:
                    self._started = trio.Event()
                    await self._started.wait()
                await trio.sleep(TICK)
                await self._sweep(trio.current_time())

    async def wait_empty(self) -> None:
        """Wait until there is no flight."""
        await self._completion.wait_empty()

    def start(self, forward: Forward, port: DatagramPort, sender: Sender) -> bytes | None:
        """Start a flight; its query leaves with the next flush(). Returns our own reply if the query cannot be sent."""
        query = forward.query
        message = query.message
        key = message[2:]
        flights = self._flights
        # Rare cases are handled apart: this method runs for every query that the table does not answer.
        if key in flights or self._failures.until or self.loops.out or query.name.endswith(SUFFIX):
            reply = self._look_closer(query, key, port, sender)
            if reply is not None:
                return reply or None
        if not self.admission.admit(sender[2]):
            self._counters.forward_overload += 1
            return refuse(query, Rcode.REFUSED).message
        now = self._completion.now = self._completion.now or trio.current_time()
        flight = Flight(forward, (port, sender, message[:2]), key, self.upstreams.route(query.name), now)
        if not flights:
            self._started.set()
        flights[key] = flight
        self._attempts.ask_first(flight)
        return None

    def _look_closer(self, query: Query, key: bytes, port: DatagramPort, sender: Sender) -> bytes | None:
        """A reply to a query that starts no flight, b"" if it joins one, None if it starts one."""
        looped = self.loops.answer(query)
        if looped is not None:
            return looped
        flight = self._flights.get(key)
        if flight is not None:
            return self._join(flight, (port, sender, query.message[:2]))
        if self._failures.holds(key, trio.current_time()):
            return replies.fail(query, CACHED_ERROR, counters=self._counters)
        return None

    def _join(self, flight: Flight, recipient: Recipient) -> bytes:
        """Let one more client wait for a flight: b"", or a reply if a limit is reached."""
        _, sender, message_id = recipient
        again = flight.has(recipient)
        if not again:
            if not self.admission.admit(sender[2]):
                self._counters.forward_overload += 1
                return message_id + refuse(flight.query, Rcode.REFUSED).message[2:]
            self._counters.forward_joined += 1
            flight.join(recipient)
        # A client that retries must not depend on a query that is lost (the fix for CVE-2020-25686 joins them).
        if again or trio.current_time() - max(flight.started, flight.asked_at) >= IMPATIENT:
            self._attempts.ask_again(flight)
        return b""

    def flush(self) -> None:
        """Send the posted queries to the upstreams and the posted replies to the clients."""
        self._attempts.flush()
        self._completion.flush()

    async def _sweep(self, now: float) -> None:
        """Take the steps of all flights that are due, a slice at a time: there may be thousands."""
        due = []
        for flight in self._flights.values():
            if flight.started + HURRIED_RETRY > now:
                break  # they are in the order of their start, and no step is due earlier
            if flight.due <= now:
                due.append(flight)
        for index, flight in enumerate(due, start=1):
            while not flight.done and flight.due <= now:
                self._attempts.take_step(flight)
            if index % _SLICE == 0:
                self.flush()
                await trio.lowlevel.checkpoint()
        self.flush()
        self._failures.forget_old(now)
        self.upstreams.close_retired()

    def arrived(self, sock: UpstreamSocket, messages: list[bytes]) -> None:
        """See Receiver."""
        self._completion.now = trio.current_time()
        waiting, search = sock.waiting, self.verification.search
        if search is not None and len(messages) > 1 and not search(b"".join(messages)):
            search = None  # one search for all of them takes less time, and nearly always finds nothing
        for reply in messages:
            flight = waiting.pop(reply[:2], None)
            if flight is None:
                self._note_stray(sock)
            elif flight.passes and not (search and search(reply)) and replies.is_usual(reply, flight.question):
                sock.health.misses = 0
                self._completion.complete_unchanged(flight, reply, sock.endpoint)
            elif not replies.belongs(reply, flight.question):
                waiting[reply[:2]] = flight
                self._note_stray(sock)
            else:
                sock.health.misses = 0
                self._completion.complete(flight, reply, sock.endpoint)

    def _note_stray(self, sock: UpstreamSocket) -> None:
        """Count a forged, late or malformed reply: the right one may still arrive (RFC 5452 section 9.1)."""
        self._counters.forward_mismatches += 1
        sock.strays += 1
        if sock.strays % _STRAYS == 0:
            for flight in list(sock.waiting.values()):
                self._attempts.try_tcp(flight)

    def broken(self, sock: UpstreamSocket) -> None:
        """See Receiver: the flights that wait there ask the next upstream."""
        sock.note_miss()
        waiting, sock.waiting = sock.waiting, {}
        # A flight that was sent twice from the same port waits under two IDs.
        for flight in dict.fromkeys(waiting.values()):
            self._attempts.note_unreachable(flight)
