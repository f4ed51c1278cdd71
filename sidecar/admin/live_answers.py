"""Live answers: lines that are sent as they come, until the client or the source ends.

The law: a live answer lasts as long as its client reads it. Each send has a deadline, the end of the connection ends
the answer also while no line comes, and one answer more than the most is refused: to cancel the oldest, as elsewhere on
this port, would let watchers that come again cancel one another for ever. Tested in test_live_answers.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Final

import h11
import trio

from sidecar.admin.answers import Answer

MAXIMUM_LIVE: Final = 16
"""Live answers at the same time."""
HEARTBEAT_SECONDS: Final = 5.0
"""Between two lines; without an event an empty line is sent, by which a client tells a quiet server from a dead one."""
_PART: Final = 4
_CHUNK: Final = 4_096
_MOST_READ: Final = 4
"""Chunks that a client may send after its request."""


def most_live(places: int) -> int:
    """How many of the places of an admin port live answers may take."""
    return min(MAXIMUM_LIVE, max(1, places // _PART))


async def with_heartbeat(receive: Callable[[], Awaitable[bytes]]) -> AsyncGenerator[bytes, None]:
    """What `receive` returns, again and again, and an empty line whenever it takes too long; ends with EndOfChannel.

    `receive` is cancelled and called again, and must lose nothing by it.
    """
    while True:
        lines = b"\n"
        try:
            # Around the wait alone: a scope around `yield` would cancel the consumer.
            with trio.move_on_after(HEARTBEAT_SECONDS):
                lines = await receive()
        except trio.EndOfChannel:
            return
        yield lines


class LiveAnswers:
    """The live answers of one server."""

    def __init__(self, most: int, *, send_seconds: float) -> None:
        """A send that takes longer than `send_seconds` ends its answer."""
        self._most = most
        self._send_seconds = send_seconds
        self._open = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return self._open >= self._most

    def refusal(self) -> Answer:
        """The answer in place of one too many."""
        return Answer(503, f"There are already {self._most} live answers here; end one of them.\n".encode())

    async def send(
        self, stream: trio.SocketStream, http: h11.Connection, head: bytes, lines: AsyncIterator[bytes]
    ) -> None:
        """Send the lines until their end, or until the client reads or listens no more; then close `lines`."""
        self._open += 1
        try:
            async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
                if isinstance(lines, AsyncGenerator):
                    await stack.enter_async_context(aclosing(lines))
                nursery.start_soon(_wait_for_end, stream, nursery.cancel_scope)
                await self._send_all(stream, http, head, lines)
                nursery.cancel_scope.cancel()
        finally:
            self._open -= 1

    async def _send_all(
        self, stream: trio.SocketStream, http: h11.Connection, head: bytes, lines: AsyncIterator[bytes]
    ) -> None:
        try:
            # At once: a client waits for the head, and lines may be rare.
            await self._send(stream, head)
            async for line in lines:
                await self._send(stream, http.send(h11.Data(data=line)) or b"")
            await self._send(stream, http.send(h11.EndOfMessage()) or b"")
            await stream.send_eof()
        except (trio.TooSlowError, trio.BrokenResourceError):
            # The client does not read, or has gone; the connection is closed without the end of the answer.
            return

    async def _send(self, stream: trio.SocketStream, octets: bytes) -> None:
        with trio.fail_after(self._send_seconds):
            await stream.send_all(octets)


async def _wait_for_end(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    """Cancel when the client has closed its direction, or sends too much."""
    try:
        for _ in range(_MOST_READ):
            if not await stream.receive_some(_CHUNK):
                break
    except trio.BrokenResourceError:
        pass
    scope.cancel()
