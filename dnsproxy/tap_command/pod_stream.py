"""Pod stream: the lines of one pod's `/tap`, through the API server.

The law: it ends with the answer, or with an error in words that the user can act on; a connection over which nothing
comes is lost after SILENCE, because a server sends an empty line when it has no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import trio

from dnsproxy.admin.tap_route import OFF, PATH
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound, TimedOut
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.protocol import LineSplitter

SILENCE: Final = 20.0
"""Seconds; four empty lines of a quiet server."""
_NO_PATH: Final = "There is nothing here"


async def read_pod(
    client: ApiClient, *, namespace: str, pod: str, port: int, fields: Mapping[str, str], take: Callable[[bytes], None]
) -> None:
    """Give the lines to `take`, the first is empty; returns when the server ends the answer. Raises ApiError."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{PATH}"
    splitter = LineSplitter()
    with trio.CancelScope(deadline=trio.current_time() + SILENCE) as silence:
        async with client.stream(path, fields, seconds=math.inf) as chunks:
            take(b"")
            async for chunk in chunks:
                silence.deadline = trio.current_time() + SILENCE
                for line in splitter.feed(chunk):
                    take(line)
    if silence.cancelled_caught:
        raise TimedOut(f"nothing came for {SILENCE:g} s")


def is_missing_right(error: ApiError) -> bool:
    """Whether the API server refused it: another pod will be refused too."""
    return isinstance(error, Forbidden) and OFF not in str(error)


def reason_of(error: ApiError) -> str:
    """Why a pod shows nothing, for the user."""
    if isinstance(error, Forbidden) and OFF in str(error):
        return OFF
    if isinstance(error, NotFound) and _NO_PATH in str(error):
        return f"its server has no {PATH}; it is no `dnsproxy serve`, or an older one"
    return str(error)
