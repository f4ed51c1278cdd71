"""Sending answers: a small one at once, a large one in pieces, a live one line by line (live_answers.py).

The law: a piece is made only when the one before it was sent, one piece at a time over all clients, and each wait has a
deadline: a client that does not read keeps a bounded amount of memory for a bounded time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from time import perf_counter
from typing import Final

import h11
import trio

from sidecar.admin.answers import Answer
from sidecar.admin.live_answers import LiveAnswers
from sidecar.admin.newest import Newest
from sidecar.loop.slices import SLICE

SEND_SECONDS: Final = 10
STREAM_SECONDS: Final = 60
"""For a whole answer sent in pieces; each piece has SEND_SECONDS."""
MAXIMUM_STREAMS: Final = 64
"""Answers in pieces at the same time, because each may keep its data in memory. Beyond this the oldest is cancelled."""


class Sender:
    """Sends the answers of one server."""

    def __init__(self, *, most_live: int) -> None:
        """`most_live` answers are live at the same time; one more is refused."""
        self._live = LiveAnswers(most_live, send_seconds=SEND_SECONDS)
        self._streams = Newest(MAXIMUM_STREAMS)
        self._turn = trio.Lock()
        """Held while a piece of a large answer is made."""

    async def send(
        self,
        stream: trio.SocketStream,
        http: h11.Connection,
        answer: Answer,
        *,
        with_body: bool = True,
        leave_place: Callable[[], None] = lambda: None,
    ) -> None:
        """Send the whole answer and the end of the stream. Raises TooSlowError, and what trio raises for streams.

        `leave_place` is called before a live answer, which may last for hours.
        """
        if isinstance(answer.body, AsyncIterator) and with_body and self._live.is_full:
            answer = self._live.refusal()
        head = http.send(h11.Response(status_code=answer.status, headers=list(_headers_of(answer).items()))) or b""
        if isinstance(answer.body, bytes) or not with_body:
            body = http.send(h11.Data(data=answer.body)) or b"" if isinstance(answer.body, bytes) and with_body else b""
            with trio.fail_after(SEND_SECONDS):
                await stream.send_all(head + body + (http.send(h11.EndOfMessage()) or b""))
                await stream.send_eof()
        elif isinstance(answer.body, AsyncIterator):
            leave_place()
            await self._live.send(stream, http, head, answer.body)
        else:
            with self._streams.one(), trio.fail_after(STREAM_SECONDS):
                await _send_pieces(stream, http, head, answer.body, self._turn)


def _headers_of(answer: Answer) -> dict[str, str]:
    has_content = answer.status != 304  # noqa: PLR2004  # Not Modified, which has neither content nor its length
    headers = {
        **({"Content-Type": answer.content_type} if has_content else {}),
        # Answers must be requested again each time; a client may keep one with a tag to revalidate it.
        "Cache-Control": "no-cache" if "ETag" in answer.headers else "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **answer.headers,
    }
    # Without a length h11 sends chunks, so a client can tell a complete answer from a truncated one.
    return headers | (
        {"Content-Length": str(len(answer.body))} if isinstance(answer.body, bytes) and has_content else {}
    )


async def _send_pieces(
    stream: trio.SocketStream, http: h11.Connection, head: bytes, pieces: Iterator[bytes], turn: trio.Lock
) -> None:
    octets = head
    while True:
        # trio hands the lock over in the order of requests, and each time lets other tasks run in between.
        async with turn:
            piece = _next_piece(pieces)
        if piece is None:
            break
        octets += http.send(h11.Data(data=piece)) or b""
        if piece:
            with trio.fail_after(SEND_SECONDS):
                await stream.send_all(octets)
            octets = b""
    with trio.fail_after(SEND_SECONDS):
        await stream.send_all(octets + (http.send(h11.EndOfMessage()) or b""))
        await stream.send_eof()


def _next_piece(pieces: Iterator[bytes]) -> bytes | None:
    """The next piece that is not empty, or an empty one if the slice ends first; None at the end."""
    end = perf_counter() + SLICE
    piece = next(pieces, None)
    while piece == b"" and perf_counter() < end:
        piece = next(pieces, None)
    return piece
