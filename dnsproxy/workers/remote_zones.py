"""The zones as a worker has them: it knows their name, and the parent answers.

The law: an answer goes through the control socket. For a transfer that the client may ask for, the connection is
handed to the parent instead, with its descriptor and with what was received on it. At most MOST queries wait for the
parent; the oldest is dropped for a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from dnsproxy.answers.decide import Outcome, refuse
from dnsproxy.dns.wire import Query, Rcode
from dnsproxy.server.zone_service import Elsewhere
from dnsproxy.workers.messages import Ask, Notified, Told
from dnsproxy.zone.concern import query_within
from dnsproxy.zone.requests import answer_notify

MOST: Final = 4_096
PATIENCE: Final = 2.0
"""Seconds that a query over TCP waits for the parent, which answers at once unless it hangs."""


class RemoteZones:
    """A ZoneService of a worker. `send` takes messages for the parent."""

    def __init__(self, zone: bytes, send: Callable[[Ask], None]) -> None:
        self._zone = zone
        self._send = send
        self._waiting: dict[int, Callable[[bytes | None], None]] = {}
        self._asked = 0

    def concerns(self, message: bytes, outcome: Outcome) -> Query | None:
        """See ZoneService."""
        return query_within(self._zone, message, outcome)

    def answer_datagram(self, query: Query, *, client: str, reply: Callable[[bytes], None]) -> None:
        """See ZoneService."""

        def take(message: bytes | None) -> None:
            if message is not None:
                reply(message)

        self._ask(query, take, client=client, stream=False)

    def answer_stream(self, query: Query, *, client: str) -> Elsewhere:
        """See ZoneService."""
        return Elsewhere(partial(self._ask_and_wait, query, client))

    def takes_connection(self, query: Query, *, client: str) -> bool:
        """See ZoneService."""
        del query, client
        return False

    def told(self, answer: Told) -> None:
        """The parent's answer."""
        take = self._waiting.pop(answer.ident, None)
        if take is not None:
            take(answer.message)

    def _ask(self, query: Query, take: Callable[[bytes | None], None], *, client: str, stream: bool) -> int:
        self._asked += 1
        self._waiting[self._asked] = take
        if len(self._waiting) > MOST:
            del self._waiting[next(iter(self._waiting))]
        self._send(Ask(self._asked, query.message, client, stream))
        return self._asked

    async def _ask_and_wait(self, query: Query, client: str) -> bytes | None:
        """The parent's answer; None if it wants the connection."""
        send, receive = trio.open_memory_channel[bytes | None](1)
        ident = self._ask(query, send.send_nowait, client=client, stream=True)
        try:
            with trio.move_on_after(PATIENCE):
                return await receive.receive()
        finally:
            self._waiting.pop(ident, None)
        return refuse(query, Rcode.SERVFAIL).message


def make_answer_notify(zones: tuple[bytes, ...], send: Callable[[Notified], None]) -> Callable[[bytes], bytes | None]:
    """The answers to NOTIFY of a worker, which passes it on to the parent."""

    def answer(message: bytes) -> bytes | None:
        def take(zone: bytes, _serial: int | None) -> bool:
            if zone in zones:
                send(Notified(message))
            return zone in zones

        return answer_notify(message, take)

    return answer
