"""The zones as a worker has them: it knows their name, and the parent answers.

The law: a datagram's answer goes through the control socket; a connection is handed to the parent with its descriptor,
and with what was received on it. At most MOST datagrams wait for the parent; the oldest is dropped for a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dnsproxy.answers.decide import Outcome
from dnsproxy.dns.wire import Query
from dnsproxy.server.zone_service import HAND_OVER, HandOver
from dnsproxy.workers.messages import Ask, Notified, Told
from dnsproxy.zone.concern import query_within
from dnsproxy.zone.requests import answer_notify

MOST: Final = 4_096


class RemoteZones:
    """A ZoneService of a worker. `send` takes messages for the parent."""

    def __init__(self, zone: bytes, send: Callable[[Ask], None]) -> None:
        self._zone = zone
        self._send = send
        self._waiting: dict[int, Callable[[bytes], None]] = {}
        self._asked = 0

    def concerns(self, message: bytes, outcome: Outcome) -> Query | None:
        """See ZoneService."""
        return query_within(self._zone, message, outcome)

    def answer_datagram(self, query: Query, *, client: str, reply: Callable[[bytes], None]) -> None:
        """See ZoneService."""
        self._asked += 1
        self._waiting[self._asked] = reply
        if len(self._waiting) > MOST:
            del self._waiting[next(iter(self._waiting))]
        self._send(Ask(self._asked, query.message, client))

    def answer_stream(self, query: Query, *, client: str) -> HandOver:
        """See ZoneService."""
        del query, client
        return HAND_OVER

    def told(self, answer: Told) -> None:
        """The parent's answer to a datagram."""
        reply = self._waiting.pop(answer.ident, None)
        if reply is not None:
            reply(answer.message)


def make_answer_notify(zones: tuple[bytes, ...], send: Callable[[Notified], None]) -> Callable[[bytes], bytes | None]:
    """The answers to NOTIFY of a worker, which passes it on to the parent."""

    def answer(message: bytes) -> bytes | None:
        def take(zone: bytes, _serial: int | None) -> bool:
            if zone in zones:
                send(Notified(message))
            return zone in zones

        return answer_notify(message, take)

    return answer
