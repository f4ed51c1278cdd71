"""The server: joins listening sockets, responder and forwarder. One object per process; its run() is the whole service.

The law: lifetimes only; what a message gets is in responder.py, and how datagrams and connections bring it in
datagram_server.py and stream_server.py.
"""

from __future__ import annotations

import select
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

import trio

from dnsproxy.answers.answer_records import Answers
from dnsproxy.answers.decide import Forward, Refuse, refuse
from dnsproxy.datagrams.port import ID, DatagramPort, refuse_more
from dnsproxy.dns.wire import Query, Rcode, rcode_of
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.forward.upstream_report import UpstreamReport
from dnsproxy.forward.verification import Verification
from dnsproxy.replace.verdicts import LeadsTo, Led, Verdict
from dnsproxy.server.datagram_server import DatagramServer
from dnsproxy.server.responder import Responder
from dnsproxy.server.stream_connection import StreamLimits
from dnsproxy.server.stream_server import StreamServer
from dnsproxy.server.zone_service import Elsewhere, Transfer
from dnsproxy.tap.seen import Outcome, outcome_of
from sidecar.loop.host import make_poller
from sidecar.loop.poller import Poller

POLLED: Final = 4
"""Sockets, some batches each, before the other tasks get their turn."""

_VERDICTS_EVERY: Final = 1.0
"""Seconds by which a verdict may be used longer than its time."""
_GOING_ON: Final = 0.5
"""Seconds of a drain in which datagrams are answered as before while connections end."""
_EMPTYING: Final = 1.0
"""Seconds for the datagrams that the kernel has queued."""

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
        self._stop_ports: Callable[[], Sequence[DatagramPort]] = tuple
        """Ends what comes over UDP; the ports whose queues are still to be answered."""

    @property
    def outstanding(self) -> int:
        """How many queries wait for an upstream."""
        return len(self.forwarder) if self.forwarder is not None else 0

    def upstream_reports(self) -> list[UpstreamReport]:
        """The state of each upstream, in the order to ask them."""
        return self.forwarder.upstreams.reports() if self.forwarder is not None else []

    def led(self) -> tuple[object, list[Led]]:
        """The claimed names that lead elsewhere, and a value that differs after each change of them."""
        if self.forwarder is None:
            return 0, []
        verdicts = self.forwarder.verification.verdicts
        return verdicts.version, verdicts.led()

    def led_counts(self) -> dict[LeadsTo, int]:
        """How many claimed names and types lead where."""
        return self.forwarder.verification.verdicts.counts() if self.forwarder is not None else {}

    def asked_names(self) -> int:
        """How many claimed names were asked lately; one that was asked for two types counts once."""
        return self.forwarder.verification.verdicts.names if self.forwarder is not None else 0

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

    async def look(self, name: bytes, claim: Answers) -> Verdict | None:
        """Where a claimed exact name leads, see Verification; None if the server does not run."""
        return await self.forwarder.verification.look(name, claim) if self.forwarder is not None else None

    async def run(
        self,
        ports: Sequence[DatagramPort],
        listeners: Sequence[trio.SocketListener],
        *,
        unread_since: float | None = None,
        own: int | None = None,
    ) -> None:
        """Serve bound UDP ports and listening TCP sockets until cancelled.

        `unread_since`: since when nothing may have read the ports, on the clock of time.perf_counter(). `own`: how many
        of either kind end with this server; the others, which come after them, are systemd's. None: all.
        """
        begun = time.perf_counter() if unread_since is None else unread_since
        poller = make_poller(batch=POLLED)
        with (
            poller,
            Forwarder(settings=self._forwarding, poller=poller, counters=self.counters, tap=self.tap) as forwarder,
        ):
            self.forwarder = forwarder
            self.verify_with(forwarder.verification)
            async with trio.open_nursery() as nursery:
                await nursery.start(forwarder.run)
                nursery.start_soon(self._end_verdicts, forwarder.verification)
                for place, listener in enumerate(listeners):
                    nursery.start_soon(partial(self._streams.run, listener, own=own is None or place < own))
                with ExitStack() as watched:
                    for port in ports:
                        descriptor = port.socket.fileno()
                        server = DatagramServer(self, port, forwarder, unread_since=begun)
                        poller.add(descriptor, server.handle, edge=False)
                        watched.callback(poller.remove, descriptor)
                    self._stop_ports = partial(_stop_ports, ports, poller, len(ports) if own is None else own)
                    await trio.sleep_forever()

    async def _end_verdicts(self, verification: Verification) -> None:
        while True:
            await trio.sleep(_VERDICTS_EVERY)
            self.forget_recipes(verification.verdicts.expire(trio.current_time()))

    async def drain(self) -> None:
        """Answer all queries that the kernel has accepted, and refuse others.

        Connections end with FIN, and forwarded queries get a reply or SERVFAIL.
        """
        with trio.move_on_after(_GOING_ON) as going_on:
            await self._streams.drain()
        await _empty(self._stop_ports())
        if going_on.cancelled_caught:
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


def _stop_ports(ports: Sequence[DatagramPort], poller: Poller, own: int) -> Sequence[DatagramPort]:
    """Refuse further datagrams at our own ports, which are returned; what comes to the others is the next process's."""
    for port in ports[own:]:
        poller.remove(port.socket.fileno())
    for port in ports[:own]:
        refuse_more(port.socket)
    return ports[:own]


async def _empty(ports: Sequence[DatagramPort]) -> None:
    """Wait until the poller has read all that is queued."""
    queues = select.poll()
    for port in ports:
        queues.register(port.socket, select.POLLIN)
    with trio.move_on_after(_EMPTYING):
        # The kernel has no event for an empty queue.
        while True:
            if not queues.poll(0):
                break
            await trio.lowlevel.checkpoint()
