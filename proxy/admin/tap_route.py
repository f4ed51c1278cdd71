"""`GET /tap`: connections as they end, one JSON line each.

The law: with `--tap off` nothing is noted for anyone, and the answer says why.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from proxy.tap.ended import format_batch
from proxy.tap.filters import TapFilter, parse_filter
from proxy.tap.tap import Subscription, Tap
from sidecar.admin.answers import NDJSON, Answer, Route
from sidecar.admin.live_answers import with_heartbeat


def tap_route(tap: Tap | None) -> dict[str, Route]:
    """The route of the admin port; None with `--tap off`."""

    def answer(query: Mapping[str, str]) -> Answer:
        if tap is None:
            return Answer(403, b"This relay shows no connections: it runs with --tap off.\n")
        try:
            wanted = parse_filter(query)
        except ValueError as error:
            return Answer(400, f"{error}\n".encode())
        return Answer(200, _lines(tap, wanted), NDJSON)

    return {"/tap": answer}


async def _lines(tap: Tap, wanted: TapFilter) -> AsyncGenerator[bytes, None]:
    subscription = tap.subscribe(wanted)
    lines = with_heartbeat(lambda: _receive(subscription))
    try:
        async for line in lines:
            yield line
    finally:
        subscription.close()
        await lines.aclose()


async def _receive(subscription: Subscription) -> bytes:
    return format_batch(*await subscription.receive())
