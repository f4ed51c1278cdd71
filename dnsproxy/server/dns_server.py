"""The server: joins listening sockets, table and forwarder. One object per process; its run() is the whole service.

The law: an answer from the table waits for nothing, and a bug costs one query: it is caught here, and for replies in
forward/completion.py.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
import trio

from dnsproxy.answers.counters import Counters
from dnsproxy.answers.decide import Answer, Drop, Forward, Refuse, decide, refuse, server_failure
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.answers.table import HostTable
from dnsproxy.datagrams.port import ID, DatagramPort, Sender
from dnsproxy.dns import probe
from dnsproxy.dns.wire import Fault, Query, Rcode, rcode_of
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.server.stale import STALE, is_stale
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.server.stream_server import StreamServer
from dnsproxy.server.zone_service import HandOver, Transfer, ZoneService
from dnsproxy.tap.hub import Tap
from dnsproxy.tap.seen import Outcome, outcome_of
from sidecar.loop.poller import Poller

_ROUNDS = 16  # batches from one socket before the other tasks get their turn
# While a batch of this size is processed, more arrive: checking costs one system call, a wakeup ten times as much.
_FEW = 8
_CATCH_UP = 256  # datagrams, received one by one, before the other tasks get their turn
_POLLED = 4  # upstream sockets, one batch each, before the other tasks get their turn
# Services that answer every datagram (echo, discard, daytime, qotd, chargen, time), and port 0: an error to a forged
# sender there would come back for ever.
_REFLECTORS = frozenset({0, 7, 9, 13, 17, 19, 37})


_StreamResult = bytes | Forward | Transfer | HandOver | None


class DnsServer:
    """Answers from `table`, which may be replaced at any time, and forwards all other queries."""

    def __init__(self, *, forwarding: ForwardSettings, limits: StreamLimits | None = None) -> None:
        self.table = HostTable()
        self._quick = QuickAnswers(self.table)
        self.tap = Tap(self._rule_of)
        """Shows each query to those who listen."""
        self._probe_row = probe.ROW
        self.counters = Counters()
        self.forwarder: Forwarder | None = None
        self.zones: ZoneService | None = None
        """Asked before a query is forwarded or refused."""
        self.give_stream: Callable[[trio.SocketStream, bytes], Awaitable[None]] | None = None
        """Gives a connection to the process that answers for `zones`, with what was received on it."""
        self.answer_notify: Callable[[bytes], bytes | None] | None = None
        """Gives the answer to a NOTIFY, None for any other message."""
        self._forwarding = forwarding
        self._limits = limits or StreamLimits()
        self._streams = StreamServer(self, counters=self.counters, limits=self._limits)
        self._log = structlog.get_logger("dnsproxy.server")

    def _rule_of(self, name: bytes) -> str:
        return self.table.rule_of(name)

    @property
    def outstanding(self) -> int:
        """How many queries wait for an upstream."""
        return len(self.forwarder) if self.forwarder is not None else 0

    def upstream_reports(self) -> list[UpstreamReport]:
        """The state of each upstream, in the order to ask them."""
        return self.forwarder.upstreams.reports() if self.forwarder is not None else []

    def report_forwards(self, forwards: str) -> None:
        """Answer probes with this text on where all other names are forwarded."""
        self._probe_row = probe.make_row(forwards)

    def replace_upstreams(self, forwarding: ForwardSettings) -> None:
        """Forward to other upstreams from now on; the limits stay those of the start."""
        self._forwarding = forwarding
        if self.forwarder is not None:
            self.forwarder.upstreams.replace(forwarding)

    async def ask_upstream(self, query: Query) -> bytes | None:
        """Ask the upstreams, whatever the table has: a whole reply that belongs to the query, or None.

        The caller sets the deadline.
        """
        return await self.forwarder.upstreams.exchange(query) if self.forwarder is not None else None

    async def run(
        self,
        ports: Sequence[DatagramPort],
        listeners: Sequence[trio.SocketListener],
        *,
        unread_since: float | None = None,
    ) -> None:
        """Serve bound UDP ports and listening TCP sockets until cancelled.

        `unread_since`: since when nothing may have read the ports, on the clock of time.perf_counter().
        """
        begun = time.perf_counter() if unread_since is None else unread_since
        poller = Poller(batch=_POLLED)
        with (
            poller,
            Forwarder(settings=self._forwarding, poller=poller, counters=self.counters, tap=self.tap) as forwarder,
        ):
            self.forwarder = forwarder
            async with trio.open_nursery() as nursery:
                nursery.start_soon(forwarder.run)
                for port in ports:
                    nursery.start_soon(self._serve_datagrams, port, forwarder, begun)
                for listener in listeners:
                    nursery.start_soon(self._streams.run, listener)

    async def drain(self) -> None:
        """Answer all open queries: TCP connections end with FIN, forwarded queries get a reply or SERVFAIL."""
        await self._streams.drain()
        if self.forwarder is not None:
            await self.forwarder.wait_empty()

    async def _serve_datagrams(self, port: DatagramPort, forwarder: Forwarder, emptied: float) -> None:
        descriptor = port.socket.fileno()
        while True:
            await trio.lowlevel.wait_readable(descriptor)
            for _ in range(_ROUNDS):
                gap = time.perf_counter() - emptied
                # Also after a quiet time, and at times under load: one datagram is received alone then. Before each
                # batch, because a hang may begin amid one.
                if gap > STALE:
                    await self._catch_up(port, forwarder, gap=gap)
                    # The rest is not stale. Without this, a queue that load never empties is caught up with before
                    # each batch.
                    emptied = time.perf_counter()
                bodies = port.receive()
                few = len(bodies) < _FEW
                if few:
                    # Before the answers: queries that arrive during a hang amid them wait since now.
                    emptied = time.perf_counter()
                if bodies:
                    self._respond_batch(bodies, port, forwarder)
                if few:
                    break

    async def _catch_up(self, port: DatagramPort, forwarder: Forwarder, *, gap: float) -> None:
        """Take datagrams one by one until one is not stale."""
        for taken in itertools.count(1):
            bodies = port.receive(1)
            stale = bool(bodies) and is_stale(port.age(), gap=gap)
            self._respond_batch(bodies, port, forwarder, stale=stale)
            if not stale:
                return
            if not taken % _CATCH_UP:
                await trio.lowlevel.checkpoint()

    def _respond_batch(
        self, bodies: list[bytes], port: DatagramPort, forwarder: Forwarder, *, stale: bool = False
    ) -> None:
        begun = time.perf_counter()
        counters = self.counters
        counters.requests_udp += len(bodies)
        replies, undecided = self._answer_quickly(bodies)
        counters.table_by_rcode[Rcode.NOERROR] += len(bodies) - len(undecided)
        answered = len(bodies)
        for position in undecided:
            reply = self._respond_alone(position, port, forwarder, stale=stale)
            if reply is None:
                answered -= 1
            else:
                replies[position] = reply[ID:]
        port.send(replies)
        forwarder.flush()
        if self.tap.listening:
            self.tap.note_batch(port, replies, seconds=time.perf_counter() - begun)
        if answered:
            counters.table_seconds.observe(time.perf_counter() - begun, times=answered)

    def _answer_quickly(self, bodies: list[bytes]) -> tuple[list[bytes | None], list[int]]:
        try:
            if self._quick.table is not self.table:
                self._quick = QuickAnswers(self.table)
            return self._quick.answer(bodies)
        except Exception:  # noqa: BLE001  # a bug there costs time but no answer: decide answers all queries
            self.counters.failures += 1
            self._log.exception("a batch was not answered quickly", queries=len(bodies))
            return [None] * len(bodies), list(range(len(bodies)))

    def _respond_alone(self, position: int, port: DatagramPort, forwarder: Forwarder, *, stale: bool) -> bytes | None:
        message = port.message(position)
        try:
            return self._respond(message, position, port, forwarder, stale=stale)
        except Exception:  # noqa: BLE001  # a bug costs one query: ending here would stop the DNS of every pod
            return self._fail(message)

    def _respond(
        self, message: bytes, position: int, port: DatagramPort, forwarder: Forwarder, *, stale: bool
    ) -> bytes | None:
        outcome = decide(message, self.table, stream=False, probe_row=self._probe_row)
        if self.zones is not None and not isinstance(outcome, Answer):
            query = self.zones.concerns(message, outcome)
            if query is not None:
                sender = port.sender(position)
                post = partial(self._post, port, sender, message, time.perf_counter())
                self.zones.answer_datagram(query, client=port.host(sender), reply=post)
                return None
        if isinstance(outcome, Forward):
            if stale:
                self.counters.forward_stale += 1
                self._show_dropped(message, port, position)
                return None
            return forwarder.start(outcome, port, port.sender(position))
        if isinstance(outcome, Refuse):
            outcome = self._answer_other_opcode(message, outcome)
        if isinstance(outcome, Refuse) and port.source_port(port.sender(position)) in _REFLECTORS:
            outcome = Drop(Fault.FORM)
        if isinstance(outcome, Drop):
            self._show_dropped(message, port, position)
        return self._count(outcome)

    def _show_dropped(self, message: bytes, port: DatagramPort, position: int) -> None:
        if self.tap.listening:
            client = port, port.sender(position)
            self.tap.note(client, message, b"", Outcome.DROPPED, seconds=0.0)

    def respond_stream(
        self, message: bytes, *, client: str, port: int = 0
    ) -> bytes | Forward | Transfer | HandOver | None:
        """See StreamService."""
        begun = time.perf_counter()
        result, outcome = self._respond_stream(message, client=client)
        if self.tap.listening and outcome is not None:
            reply = result if isinstance(result, bytes) else b""
            self.tap.note((None, (client, port)), message, reply, outcome, seconds=time.perf_counter() - begun)
        return result

    def _respond_stream(self, message: bytes, *, client: str) -> tuple[_StreamResult, Outcome | None]:
        """What respond_stream returns, and what to show; None if another place shows it."""
        self.counters.requests_tcp += 1
        body = self._answer_quickly([message[ID:]])[0][0]
        if body is not None:
            self.counters.table_by_rcode[Rcode.NOERROR] += 1
            return message[:ID] + body, Outcome.TABLE
        try:
            outcome = decide(message, self.table, stream=True, keepalive=self._limits.idle, probe_row=self._probe_row)
            if self.zones is not None and not isinstance(outcome, Answer):
                query = self.zones.concerns(message, outcome)
                if query is not None:
                    answered = self.zones.answer_stream(query, client=client)
                    rcode = rcode_of(answered) if isinstance(answered, bytes) else Rcode.NOERROR
                    self.counters.own_by_rcode[rcode] += 1
                    return answered, None if isinstance(answered, HandOver) else Outcome.ZONE
        except Exception:  # noqa: BLE001  # as for a datagram
            return self._fail(message), Outcome.FAILED
        if isinstance(outcome, Forward):
            return outcome, None
        if isinstance(outcome, Refuse):
            outcome = self._answer_other_opcode(message, outcome)
        reply = self._count(outcome)
        return reply, Outcome.DROPPED if reply is None else outcome_of(reply)

    async def serve_stream(self, stream: trio.SocketStream, received: bytes) -> None:
        """Serve a connection to its end that another process began to serve; `received`: what it has received."""
        await self._streams.serve(stream, received)

    async def hand_over(self, stream: trio.SocketStream, received: bytes) -> None:
        """See StreamService."""
        if self.give_stream is not None:
            await self.give_stream(stream, received)

    async def forward_stream(self, forward: Forward, *, client: str, port: int = 0) -> bytes:
        """See StreamService."""
        if self.forwarder is None:
            return refuse(forward.query, Rcode.SERVFAIL).message
        return await self.forwarder.streams.forward(forward, client=client, port=port)

    def _answer_other_opcode(self, message: bytes, outcome: Refuse) -> Refuse:
        """The answer to a NOTIFY in place of NOTIMP."""
        if outcome.rcode != Rcode.NOTIMP or self.answer_notify is None:
            return outcome
        reply = self.answer_notify(message)
        return outcome if reply is None else Refuse(reply, Rcode(rcode_of(reply)))

    def _post(self, port: DatagramPort, sender: Sender, query: bytes, begun: float, reply: bytes) -> None:
        self.counters.own_by_rcode[rcode_of(reply)] += 1
        port.post(reply, sender)
        port.flush()
        if self.tap.listening:
            self.tap.note((port, sender), query, reply, Outcome.ZONE, seconds=time.perf_counter() - begun)

    def _count(self, outcome: Answer | Refuse | Drop) -> bytes | None:
        """The octets to send for an outcome that needs no upstream."""
        if isinstance(outcome, Answer):
            self.counters.table_by_rcode[rcode_of(outcome.message)] += 1
            return outcome.message
        if isinstance(outcome, Refuse):
            self.counters.own_by_rcode[outcome.rcode] += 1
            return outcome.message
        self.counters.dropped += 1
        return None

    def _fail(self, message: bytes) -> bytes | None:
        self.counters.failures += 1
        self.counters.own_by_rcode[Rcode.SERVFAIL] += 1
        self._log.exception("a query failed", octets=len(message))
        return server_failure(message)
