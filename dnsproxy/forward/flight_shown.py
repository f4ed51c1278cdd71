"""What listeners of the tap get of a forwarded query: one value for each client that waited, one exchange for all.

The law: only called while somebody listens, and it changes nothing.
"""

from __future__ import annotations

from dnsproxy.forward.flight import Flight
from dnsproxy.tap.hub import Tap
from dnsproxy.tap.seen import Exchange, Outcome
from sidecar.values.endpoints import Endpoint


def exchange_of(flight: Flight, reply: bytes, source: Endpoint, *, datagram: bool, now: float) -> Exchange:
    """The question to the upstream that answered; `now` is on the clock of trio."""
    return Exchange(
        str(source), datagram, now - (flight.asked_at or flight.started), query=reply[:2] + flight.key, reply=reply
    )


def show_flight(
    tap: Tap, flight: Flight, reply: bytes, outcome: Outcome, exchange: Exchange | None, *, now: float
) -> None:
    """Note the end of a flight; `reply` is what its first client gets, `now` on the clock of trio."""
    seconds = now - flight.started
    port, sender, _ = flight.recipient
    tap.note((port, sender), flight.query.message, reply, outcome, seconds=seconds, exchange=exchange)
    shared = exchange and Exchange(exchange.upstream, exchange.datagram, exchange.seconds)
    for port, sender, message_id in flight.others or ():
        query = message_id + flight.key
        tap.note((port, sender), query, message_id + reply[2:], outcome, seconds=seconds, exchange=shared)
