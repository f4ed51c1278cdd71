"""Asking an upstream over TCP (RFC 7766): for clients that came over TCP, and where UDP is lost on the way.

The law: one connection a query, inside the caller's deadline; a connection or reply that fails is an upstream that did
not answer, never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from dnsproxy import stream_frames
from dnsproxy.forward import replies
from dnsproxy.forward.upstream import random_ids
from dnsproxy.wire import Query
from sidecar.endpoints import Endpoint

PER_UPSTREAM: Final = 0.8
"""Seconds for one upstream, where another one waits behind it."""


class StreamClient:
    """Exchanges single queries with the first upstream that answers."""

    def __init__(self, upstreams: Sequence[Endpoint]) -> None:
        self._upstreams = upstreams
        self._ids = random_ids()

    async def exchange(self, query: Query) -> bytes | None:
        """Upstream's reply, its ID still ours, or None where no upstream gave one."""
        for index, endpoint in enumerate(self._upstreams):
            last = index == len(self._upstreams) - 1
            with trio.move_on_after(float("inf") if last else PER_UPSTREAM):
                reply = await self._ask(endpoint, query)
                if reply is not None:
                    return reply
        return None

    async def _ask(self, endpoint: Endpoint, query: Query) -> bytes | None:
        message = next(self._ids) + query.message[2:]
        try:
            # Its own happy eyeballs are not wanted: an upstream is one address.
            stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
            async with stream:
                await stream.send_all(stream_frames.format_message(message))
                reply = await _receive_message(stream)
        except (OSError, trio.BrokenResourceError):
            return None
        if reply is None or reply[:2] != message[:2] or not replies.belongs(reply, query.question):
            return None
        return reply


async def _receive_message(stream: trio.SocketStream) -> bytes | None:
    """One length-prefixed message (RFC 1035 section 4.2.2), or None where the stream ends before it does."""
    received = bytearray()
    while not stream_frames.is_whole(received):
        chunk = await stream.receive_some()
        if not chunk:
            return None
        received += chunk
    return stream_frames.take_message(received)
