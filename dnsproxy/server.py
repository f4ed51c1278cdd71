"""The server: joins listening sockets, table and forwarder. One object a process; its run() is the service's lifetime.

The law: a table answer waits for nothing, and one query may fail alone: here, and where the forwarder lands a reply.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog
import trio

from dnsproxy import responder
from dnsproxy.counters import Counters, rcode_of
from dnsproxy.datagrams import BATCH, DatagramPort
from dnsproxy.forward import replies
from dnsproxy.forward.flight import GIVE_UP
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.stream_client import StreamClient
from dnsproxy.responder import Answer, Forward, Refuse, decide, quick_answer
from dnsproxy.stream_server import StreamLimits, StreamServer
from dnsproxy.table import HostTable
from dnsproxy.wire import Rcode
from sidecar.poller import Poller

_ROUNDS = 16  # batches from one socket before the other tasks get their turn
_STREAM_LIMIT = 0xFFFF


class DnsServer:
    """Answers from `table`, which may be replaced at any time, and forwards the rest."""

    def __init__(self, *, forwarding: ForwardSettings, limits: StreamLimits | None = None) -> None:
        self.table = HostTable()
        self.counters = Counters()
        self.forwarder: Forwarder | None = None
        self._forwarding = forwarding
        self._stream_client = StreamClient(forwarding.upstreams)
        self._limits = limits or StreamLimits()
        self._streams = StreamServer(self, counters=self.counters, limits=self._limits)
        self._stream_forwards = 0
        self._log = structlog.get_logger("dnsproxy.server")

    @property
    def outstanding(self) -> int:
        """Queries that wait for an upstream."""
        return self._stream_forwards + (len(self.forwarder) if self.forwarder is not None else 0)

    async def run(self, ports: Sequence[DatagramPort], listeners: Sequence[trio.SocketListener]) -> None:
        """Serve bound UDP ports and listening TCP sockets until cancelled."""
        with Poller() as poller:
            forwarder = Forwarder(
                settings=self._forwarding,
                poller=poller,
                counters=self.counters,
                exchange_stream=self._stream_client.exchange,
            )
            with forwarder:
                self.forwarder = forwarder
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(poller.run)
                    nursery.start_soon(forwarder.run)
                    for port in ports:
                        nursery.start_soon(self._serve_datagrams, port, forwarder)
                    if listeners:
                        nursery.start_soon(trio.serve_listeners, self._streams.serve, list(listeners))

    async def drain(self) -> None:
        """Answer what is under way: TCP connections end with FIN, forwarded queries land or time out."""
        await self._streams.drain()
        if self.forwarder is not None:
            await self.forwarder.wait_empty()

    async def _serve_datagrams(self, port: DatagramPort, forwarder: Forwarder) -> None:
        while True:
            await trio.lowlevel.wait_readable(port.socket)
            for _ in range(_ROUNDS):
                messages = port.receive()
                if messages:
                    self._respond_batch(messages, port, forwarder)
                if len(messages) < BATCH:
                    break

    def _respond_batch(self, messages: list[bytes], port: DatagramPort, forwarder: Forwarder) -> None:
        begun = time.perf_counter()
        table = self.table
        counters = self.counters
        rcodes = counters.table_by_rcode
        batch: list[bytes | None] = []
        for position, message in enumerate(messages):
            try:
                reply = quick_answer(message, table)
                if reply is None:
                    reply = self._respond(message, position, port, forwarder)
                else:
                    rcodes[0] += 1
            except Exception:  # noqa: BLE001  # one query may fail alone: ending here would take the DNS from every pod
                reply = self._fail(message)
            batch.append(reply)
        port.send(batch)
        counters.requests_udp += len(messages)
        answered = len(batch) - batch.count(None)
        if answered:
            counters.table_seconds.observe(time.perf_counter() - begun, times=answered)

    def _respond(self, message: bytes, position: int, port: DatagramPort, forwarder: Forwarder) -> bytes | None:
        outcome = self._decide(message, stream=False)
        if isinstance(outcome, Forward):
            return forwarder.depart(outcome, port, port.sender(position))
        return outcome

    def respond_stream(self, message: bytes) -> bytes | Forward | None:
        """See StreamService."""
        self.counters.requests_tcp += 1
        try:
            outcome = self._decide(message, stream=True)
        except Exception:  # noqa: BLE001  # as for a datagram
            return self._fail(message)
        if isinstance(outcome, Forward) and self._stream_forwards >= self._forwarding.outstanding:
            self.counters.forward_overload += 1
            return responder.refuse(outcome.query, Rcode.REFUSED).message
        return outcome

    async def forward_stream(self, forward: Forward) -> bytes:
        """See StreamService: what came over TCP is asked over TCP (RFC 5625 section 4.4.1)."""
        self._stream_forwards += 1
        started = trio.current_time()
        passed = None
        try:
            with trio.move_on_after(GIVE_UP):
                passed = await self._exchange_stream(forward)
        except Exception:  # noqa: BLE001  # as for a datagram: the connection's other queries go on
            self.counters.failures += 1
            self._log.exception("a query failed", octets=len(forward.query.message))
        finally:
            self._stream_forwards -= 1
        self.counters.forward_seconds.observe(trio.current_time() - started)
        if passed is None:
            self.counters.forward_timeouts += 1
            self.counters.own_by_rcode[Rcode.SERVFAIL] += 1
            return responder.refuse(forward.query, Rcode.SERVFAIL, extended_error=22).message
        self.counters.upstream_by_rcode[rcode_of(passed)] += 1
        return passed

    async def _exchange_stream(self, forward: Forward) -> bytes | None:
        reply = await self._stream_client.exchange(forward.query)
        if reply is None:
            return None
        return replies.pass_on(reply, forward.query, shields=forward.shields, limit=_STREAM_LIMIT)

    def _decide(self, message: bytes, *, stream: bool) -> bytes | Forward | None:
        outcome = decide(message, self.table, stream=stream, keepalive=self._limits.idle if stream else None)
        if isinstance(outcome, Forward):
            return outcome
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
        return responder.server_failure(message)
