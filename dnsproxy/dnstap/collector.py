"""The collector of a server: connected to again and again, until the server ends.

The law: no answer waits for a collector. Without one nobody listens, and queries cost what they cost without dnstap;
with one that reads too slowly the queue of the subscription, which is bounded, drops and counts.
"""

from __future__ import annotations

import random
from typing import Final

import structlog
import trio

from dnsproxy.dnstap.connection import Connection, LostCollector, open_connection
from dnsproxy.dnstap.messages import MessageWriter
from dnsproxy.dnstap.numbers import DnstapNumbers
from dnsproxy.dnstap.settings import DnstapSettings, format_collector
from dnsproxy.tap.hub import Tap

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds between attempts; also how long a connection holds after which the pauses begin anew."""

log = structlog.get_logger("dnsproxy.dnstap")


async def run_dnstap(tap: Tap, settings: DnstapSettings, numbers: DnstapNumbers, *, finish: float) -> None:
    """Send every query to the collector until cancelled; then what is left and STOP, for `finish` seconds at most."""
    writer = MessageWriter(identity=settings.identity, version=settings.version)
    at = format_collector(settings.collector)
    failures, reported, dropped = 0, False, 0
    while True:
        begun = trio.current_time()
        try:
            connection = await open_connection(settings.collector, writer, numbers)
        except LostCollector as error:
            if not reported:
                log.warning("dnstap collector not reached, queries are dropped", collector=at, reason=str(error))
            reported = True
        else:
            log.info("dnstap collector connected", collector=at, dropped=numbers.dropped - dropped)
            dropped = numbers.dropped
            await _use(connection, tap, numbers, at=at, finish=finish)
            dropped, reported = numbers.dropped, True
        if trio.current_time() - begun > LONGEST_PAUSE:
            failures = 0
        await trio.sleep(pause_after(failures, drawn=random.random()))  # noqa: S311  # it only spreads retries
        failures += 1


async def _use(connection: Connection, tap: Tap, numbers: DnstapNumbers, *, at: str, finish: float) -> None:
    before = numbers.sent, numbers.dropped
    reason = "the server ends"
    try:
        reason = await connection.run(tap, finish=finish)
    finally:
        sent, dropped = numbers.sent - before[0], numbers.dropped - before[1]
        note = log.info if reason == "the server ends" else log.warning
        note("dnstap collector left", collector=at, reason=reason, sent=sent, dropped=dropped)


def pause_after(failures: int, *, drawn: float) -> float:
    """Seconds before the next attempt, from the upper half of what doubles; `drawn` is in [0, 1).

    Many servers that lost one collector must not return at the same time.
    """
    ceiling = min(FIRST_PAUSE * 2.0 ** min(failures + 1, 16), LONGEST_PAUSE)
    return ceiling / 2 * (1 + drawn)
