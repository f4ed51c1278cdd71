"""The server: joins listening sockets, responder and forwarder. One object per process; its run() is the whole service.

The law: lifetimes only; what a message gets is in responder.py, and how datagrams and connections bring it in
datagram_server.py and stream_server.py.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Final

import trio

from dnsproxy.answers.decide import Forward, Refuse, refuse
from dnsproxy.datagrams.port import ID, DatagramPort
from dnsproxy.dns.wire import Query, Rcode, rcode_of
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.server.datagram_server import DatagramServer
from dnsproxy.server.responder import Responder
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.server.stream_server import StreamServer
from dnsproxy.server.zone_service import Elsewhere, Transfer
from dnsproxy.tap.seen import Outcome, outcome_of
from sidecar.loop.host import make_poller

POLLED: Final = 4
"""Sockets, some batches each, before the other tasks get their turn."""

_StreamResult = bytes | Forward | Transfer | Elsewhere | None


class DnsServer(Responder):
    """Answers from the table, and forwards all other queries."""

    def __init__(self, *, forwarding: ForwardSettings, limits: StreamLimits | None = None) -> None:
        super().__init__()
        self.forwarder: Forwarder | None = None
        self.give_stream: Callable[[trio.SocketStream, bytes], Awaitable[None]] | None = None
        """Gives a connection to the process that answers for `zones`, with what was received on it."""
        self._forwarding = forwarding
        self._limits = limits or StreamLimits()
        self._streams = StreamServer(self, counters=self.counters, limits=self._limits)

    @property
    def outstanding(self) -> int:
        """How many queries wait for an upstream."""
        return len(self.forwarder) if self.forwarder is not None else 0

    def upstream_reports(self) -> list[UpstreamReport]:
        """The state of each upstream, in the order to ask them."""
        return self.forwarder.upstreams.reports() if self.forwarder is not None else []

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
        poller = make_poller(batch=POLLED)
        with (
            poller,
            Forwarder(settings=self._forwarding, poller=poller, counters=self.counters, tap=self.tap) as forwarder,
        ):
            self.forwarder = forwarder
            async with trio.open_nursery() as nursery:
                await nursery.start(forwarder.run)
                for listener in listeners:
                    nursery.start_soon(self._streams.run, listener)
                with ExitStack() as watched:
                    for port in ports:
                        descriptor = port.socket.fileno()
                        server = DatagramServer(self, port, forwarder, unread_since=begun)
                        poller.add(descriptor, server.handle, edge=False)
                        watched.callback(poller.remove, descriptor)
                    await trio.sleep_forever()

    async def drain(self) -> None:
        """Answer all open queries: TCP connections end with FIN, forwarded queries get a reply or SERVFAIL."""
        await self._streams.drain()
        if self.forwarder is not None:
            await self.forwarder.wait_empty()

    def respond_stream(
        self, message: bytes, *, client: str, port: int = 0
    ) -> bytes | Forward | Transfer | Elsewhere | None:
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
        body = self.answer_quickly([message[ID:]])[0][0]
        if body is not None:
            self.counters.table_by_rcode[Rcode.NOERROR] += 1
            return message[:ID] + body, Outcome.TABLE
        try:
            outcome = self.decide(message, stream=True, keepalive=self._limits.idle)
            query = self.concerns_zones(message, outcome)
            if query is not None and self.zones is not None:
                answered = self.zones.answer_stream(query, client=client)
                rcode = rcode_of(answered) if isinstance(answered, bytes) else Rcode.NOERROR
                self.counters.own_by_rcode[rcode] += 1
                return answered, None if isinstance(answered, Elsewhere) else Outcome.ZONE
        except Exception:  # noqa: BLE001  # as for a datagram
            return self.fail(message), Outcome.FAILED
        if isinstance(outcome, Forward):
            return outcome, None
        if isinstance(outcome, Refuse):
            outcome = self.answer_other_opcode(message, outcome)
        reply = self.count(outcome)
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
