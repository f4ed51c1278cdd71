"""How many transfers are under way, and how much of each is sent together. Tested in tests/dnsproxy/primary.

The law: however many secondaries ask at a time, the transfers take bounded memory and a bounded part of each turn of
the loop; the secondaries that wait cost nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from dnsproxy.dns import stream_frames

TRANSFERS: Final = 32
"""Transfers that are under way at a time; the first that came are the first to end, and others wait."""
_AT_ONCE: Final = 4
"""Messages that are sent together: a turn of the loop costs more than the copies of a message."""


async def next_frames(messages: AsyncGenerator[bytes, None]) -> list[bytes]:
    """The next few messages of a transfer, framed; none after the last one."""
    frames: list[bytes] = []
    while len(frames) < _AT_ONCE and (message := await anext(messages, None)) is not None:
        frames.append(stream_frames.format_message(message))
    return frames
