"""The HTTP exchange: one request on a stream, and the beginning of its response.

The law: it reads no more than the final status line needs, at most a few kilobytes, and ends within its deadline.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import trio

from dnsproxy.doctor.collect.reaction import Reaction, broken, is_decided, judge_response
from dnsproxy.doctor.facts.probes import Outcome

AGENT: Final = "switchback-doctor"
_CHUNK: Final = 4096
_MOST: Final = 8192
"""Bytes, for a status line and the informational responses before it."""


async def exchange(stream: trio.abc.Stream, hostname: str, *, seconds: float, agent: str = AGENT) -> Reaction:
    """The reaction to `GET /` for a host; any error is one. `agent` is what logs show."""
    received = bytearray()
    end = Reaction(Outcome.CLOSED)
    with trio.move_on_after(seconds) as deadline:
        try:
            # A server that rejects a connection early sends its response and then resets: the response counts.
            with suppress(trio.BrokenResourceError):
                await stream.send_all(_request(hostname, agent))
            while not is_decided(bytes(received)) and len(received) < _MOST:
                chunk = await stream.receive_some(_CHUNK)
                if not chunk:
                    break
                received += chunk
        except trio.BrokenResourceError as error:
            end = broken(error)
    if deadline.cancelled_caught:
        end = Reaction(Outcome.SILENT, f"nothing within {seconds:g} s")
    return judge_response(bytes(received), end)


def _request(hostname: str, agent: str) -> bytes:
    request = f"GET / HTTP/1.1\r\nHost: {hostname}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    return request.encode(errors="replace")
