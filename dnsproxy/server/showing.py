"""Showing queries to the listeners of the tap, apart from those that are forwarded (forward/flight_shown.py).

The law: a bug here costs a listener a query, and no client its answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog

from dnsproxy.datagrams.port import DatagramPort
from dnsproxy.tap.hub import Client, Tap
from dnsproxy.tap.seen import Outcome

log = structlog.get_logger("dnsproxy.tap")


def show_batch(tap: Tap, port: DatagramPort, replies: Sequence[bytes | None], *, begun: float) -> None:
    """Show the queries of a batch that were answered at once; `begun` is on the clock of time.perf_counter()."""
    try:
        tap.note_batch(port, replies, seconds=time.perf_counter() - begun)
    except Exception:  # see the law
        log.exception("a batch was not shown", queries=len(replies))


def show_one(tap: Tap, client: Client, query: bytes, reply: bytes, outcome: Outcome, *, begun: float) -> None:
    """Show one query; `reply` is empty if nothing was sent, or for a transfer."""
    try:
        tap.note(client, query, reply, outcome, seconds=time.perf_counter() - begun)
    except Exception:  # see the law
        log.exception("a query was not shown", octets=len(query))
