"""The route `/tap` of the admin port: the queries of this server while they end, as lines of JSON.

The law: a listener that reads too slowly loses queries, which are counted in its lines, and slows no answer. With
`--tap off` nothing is shown and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from typing import Final

import trio

from dnsproxy.tap.event import describe, format_dropped_json, format_event_json
from dnsproxy.tap.filters import BadFilter, TapFilter, parse_filter
from dnsproxy.tap.hub import Subscription, Tap
from dnsproxy.tap.mode import TapMode
from dnsproxy.tap.recent import RecentClients, asking_of
from dnsproxy.tap.seen import Seen
from sidecar.admin.answers import NDJSON, Answer, Route
from sidecar.admin.live_answers import HEARTBEAT_SECONDS

PATH: Final = "/tap"
OFF: Final = "the tap is off (--tap off)"
"""What a server says that shows nothing; `dnsproxy tap --service` knows it by this text."""
NOTE_SECONDS: Final = 1.0
"""At least, between two lines about queries that were dropped."""


class TapRoute:
    """What `--tap` makes of the tap of one server."""

    def __init__(self, tap: Tap, mode: TapMode) -> None:
        self._tap = tap
        self._mode = mode
        self.recent = RecentClients() if mode is TapMode.RECENT else None
        """Who asked in the last minute; None if that is not recorded."""

    @property
    def shows(self) -> bool:
        """Whether listeners are shown anything."""
        return self._mode is not TapMode.OFF

    def routes(self) -> Mapping[str, Route]:
        """The route, for serve_admin."""
        return {PATH: self._show}

    async def run(self) -> None:
        """Record who asks, until cancelled; returns at once if that is not wanted."""
        if self.recent is None:
            return
        with self._tap.subscribe() as subscription:
            while True:
                for asking in await subscription.receive(asking_of):
                    if asking is not None:
                        self.recent.add(asking)

    def _show(self, fields: Mapping[str, str]) -> Answer:
        if not self.shows:
            return Answer(403, f"{OFF}\n".encode())
        try:
            wanted = parse_filter(fields)
        except BadFilter as error:
            return Answer(400, f"{error}\n".encode())
        return Answer(200, tap_lines(self._tap, wanted), NDJSON)


async def tap_lines(tap: Tap, wanted: TapFilter) -> AsyncGenerator[bytes, None]:
    """Whole lines, as they come, without an end. The first is empty: from then on nothing is missed without a note."""
    subscribed = ExitStack()
    try:
        lines = _Lines(subscribed.enter_context(tap.subscribe(wanted)))
        yield b"\n"
        while True:
            octets = b"\n"
            with trio.move_on_after(HEARTBEAT_SECONDS):
                octets = await lines.receive()
            yield octets
    finally:
        # No `with` around a yield: this shows that it must be closed, as the server does (live_answers.py).
        subscribed.close()


class _Lines:
    """The lines of one listener."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._noted = trio.current_time()

    async def receive(self) -> bytes:
        """The next lines; nothing is lost if this is cancelled."""
        lines: list[bytes] = []
        while not lines:
            # Not for ever: drops are noted also if no query follows them.
            with trio.move_on_after(NOTE_SECONDS):
                lines = await self._subscription.receive(_line_of)
            lines += self._note_dropped()
        return b"".join(lines)

    def _note_dropped(self) -> list[bytes]:
        now = trio.current_time()
        if now - self._noted < NOTE_SECONDS or not (dropped := self._subscription.take_dropped()):
            return []
        self._noted = now
        return [format_dropped_json(dropped)]


def _line_of(seen: Seen) -> bytes:
    return format_event_json(describe(seen))
