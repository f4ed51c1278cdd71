"""Queries over UDP: one handler for each port answers its datagrams in batches.

The law: a batch from the table leaves before anything else is done; datagrams that waited while this process hung are
answered from the table, and never forwarded late.
"""

from __future__ import annotations

import time
from functools import partial

from dnsproxy.answers.decide import Drop, Forward, Refuse
from dnsproxy.answers.quick import Unanswered
from dnsproxy.datagrams.port import ID, DatagramPort, Sender
from dnsproxy.dns.wire import Fault, Rcode, rcode_of
from dnsproxy.forward.forwarder import Forwarder
from dnsproxy.server.responder import Responder
from dnsproxy.server.stale import STALE, is_stale
from dnsproxy.tap.seen import Outcome

# Batches from one socket, and the seconds after which no further one begins, before the other tasks get their turn: a
# batch that is forwarded takes ten times as long as one from the table.
_ROUNDS, _TURN = 16, 0.005
# While a batch of this size is processed, more arrive: checking costs one system call, a wakeup ten times as much.
_FEW = 8
_NOERROR = int(Rcode.NOERROR)
_CATCH_UP = 256  # datagrams, received one by one, before the other tasks get their turn
# Services that answer every datagram (echo, discard, daytime, qotd, chargen, time), and port 0: an error to a forged
# sender there would come back for ever.
_REFLECTORS = frozenset({0, 7, 9, 13, 17, 19, 37})


class DatagramServer:
    """Answers what arrives at one port."""

    def __init__(self, responder: Responder, port: DatagramPort, forwarder: Forwarder, *, unread_since: float) -> None:
        """`unread_since`: since when nothing may have read the port, by time.perf_counter()."""
        self._responder = responder
        self._counters = responder.counters
        self._tap = responder.tap
        self._port = port
        self._forwarder = forwarder
        self._emptied = unread_since

    def handle(self, _events: int) -> None:
        """Answer what waits, some batches of it; the poller calls again if that is not all."""
        until = 0.0
        for _ in range(_ROUNDS):
            begun = time.perf_counter()
            until = until or begun + _TURN
            if begun > until:
                return
            gap = begun - self._emptied
            # Also after a quiet time, and at times under load: one datagram is received alone then. Before each batch,
            # because a hang may begin amid one.
            if gap > STALE:
                if not self._catch_up(gap=gap):
                    return
                # The rest is not stale. Without this, a queue that load never empties is caught up with before each
                # batch.
                self._emptied = begun = time.perf_counter()
            bodies = self._port.receive()
            few = len(bodies) < _FEW
            if few:
                # Before the answers: queries that arrive during a hang amid them wait since then.
                self._emptied = begun
            if bodies:
                self._respond_batch(bodies, begun)
            if few:
                return

    def _catch_up(self, *, gap: float) -> bool:
        """Take datagrams one by one until one is not stale; False if more may be."""
        port = self._port
        for _ in range(_CATCH_UP):
            bodies = port.receive(1)
            stale = bool(bodies) and is_stale(port.age(), gap=gap)
            self._respond_batch(bodies, time.perf_counter(), stale=stale)
            if not stale:
                return True
        return False

    def _respond_batch(self, bodies: list[bytes], begun: float, *, stale: bool = False) -> None:
        """Answer a batch that was received since `begun`, and note it when the answers have left."""
        replies, unanswered = self._responder.answer_quickly(bodies)
        waiting = self._respond_to(unanswered, replies, stale=stale) if unanswered else 0
        self._port.send(replies)
        self._forwarder.flush()
        seconds = time.perf_counter() - begun
        if self._tap.listening:
            self._tap.note_batch(self._port, replies, seconds=seconds)
        counters = self._counters
        counters.requests_udp += len(bodies)
        counters.table_by_rcode[_NOERROR] += len(bodies) - len(unanswered)
        if waiting < len(bodies):
            counters.table_seconds.observe(seconds, times=len(bodies) - waiting)

    def _respond_to(self, unanswered: list[Unanswered], replies: list[bytes | None], *, stale: bool) -> int:
        """Add the replies that are more than a look into the table; how many queries get none now."""
        port, responder, start = self._port, self._responder, self._forwarder.start
        # Zones are asked before a query is forwarded.
        decide = None if stale or responder.zones is not None else responder.forwards.decide
        waiting = 0
        for position, lowered, shape in unanswered:
            message = port.message(position)
            try:
                if shape is not None and decide is not None:
                    reply = start(decide(message, lowered, shape), port, port.sender(position))
                else:
                    reply = self._respond(message, position, stale=stale)
            except Exception:  # noqa: BLE001  # a bug costs one query: ending here would stop the DNS of every pod
                reply = responder.fail(message)
            if reply is None:
                waiting += 1
            else:
                replies[position] = reply[ID:]
        return waiting

    def _respond(self, message: bytes, position: int, *, stale: bool) -> bytes | None:
        responder, port = self._responder, self._port
        outcome = responder.decide(message, stream=False)
        query = responder.concerns_zones(message, outcome)
        if query is not None and responder.zones is not None:
            sender = port.sender(position)
            post = partial(self._post, sender, message, time.perf_counter())
            responder.zones.answer_datagram(query, client=port.host(sender), reply=post)
            return None
        if isinstance(outcome, Forward):
            if stale:
                self._counters.forward_stale += 1
                self._show_dropped(message, position)
                return None
            if responder.zones is None:
                responder.forwards.note(outcome)
            return self._forwarder.start(outcome, port, port.sender(position))
        if isinstance(outcome, Refuse):
            outcome = responder.answer_other_opcode(message, outcome)
        if isinstance(outcome, Refuse) and port.source_port(port.sender(position)) in _REFLECTORS:
            outcome = Drop(Fault.FORM)
        if isinstance(outcome, Drop):
            self._show_dropped(message, position)
        return responder.count(outcome)

    def _show_dropped(self, message: bytes, position: int) -> None:
        if self._tap.listening:
            client = self._port, self._port.sender(position)
            self._tap.note(client, message, b"", Outcome.DROPPED, seconds=0.0)

    def _post(self, sender: Sender, query: bytes, begun: float, reply: bytes) -> None:
        port = self._port
        self._counters.own_by_rcode[rcode_of(reply)] += 1
        port.post(reply, sender)
        port.flush()
        if self._tap.listening:
            self._tap.note((port, sender), query, reply, Outcome.ZONE, seconds=time.perf_counter() - begun)
