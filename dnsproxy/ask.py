"""Asking the admin port of a running server: one GET, one answer, both within limits.

The law: whoever listens there, a stranger or a server that fell ill, costs a bounded time and memory, and ends in an
answer or in one line that says what to do.
"""

from __future__ import annotations

import os
import socket
from typing import Final

import h11
import trio

from sidecar.endpoints import Endpoint
from sidecar.errors import StartError
from sidecar.text import one_line

LARGEST: Final = 128 << 20
"""Octets of an answer; 100,000 names are 20 MB."""
CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 70
"""For the whole answer; a little more than a server gives itself."""

_UNREACHABLE: Final = 3
_CHUNK: Final = 65_536
_SHOWN: Final = 200


async def ask(endpoint: Endpoint, target: str, *, largest: int = LARGEST) -> bytes:
    """The body of the answer to `GET target`. Raises StartError with status 3, which names --admin."""
    try:
        with trio.fail_after(CONNECT_SECONDS):
            stream = await _connect(endpoint)
    except (OSError, trio.TooSlowError) as error:
        raise _error(
            endpoint,
            f"no server answers there ({_cause(error)}); is `dnsproxy serve` running, and is this its --admin?",
        ) from None
    try:
        with trio.fail_after(ANSWER_SECONDS):
            async with stream:
                status, body = await _exchange(stream, endpoint, target, largest)
    except trio.TooSlowError:
        raise _error(endpoint, f"no whole answer came within {ANSWER_SECONDS} s") from None
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        raise _error(endpoint, f"what came is no whole HTTP answer ({_cause(error)}); is this its --admin?") from None
    if status == 404:  # noqa: PLR2004  # Not Found
        path = target.partition("?")[0]
        raise _error(endpoint, f"the server there has no {path}; it is no `dnsproxy serve`, or an older one")
    if status != 200:  # noqa: PLR2004  # OK
        said = one_line(body[:_SHOWN].decode(errors="replace"))
        raise _error(endpoint, f"the server there answers {status}: {said}")
    return body


async def _connect(endpoint: Endpoint) -> trio.SocketStream:
    """Not open_tcp_stream: what it raises for an address literal no longer says why."""
    connecting = trio.socket.socket(socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        await connecting.connect((endpoint.host, endpoint.port))
    except BaseException:
        connecting.close()
        raise
    return trio.SocketStream(connecting)


async def _exchange(stream: trio.SocketStream, endpoint: Endpoint, target: str, largest: int) -> tuple[int, bytes]:
    http = h11.Connection(h11.CLIENT)
    headers = [("Host", str(endpoint)), ("Accept", "application/json"), ("Connection", "close")]
    request = http.send(h11.Request(method="GET", target=target, headers=headers)) or b""
    await stream.send_all(request + (http.send(h11.EndOfMessage()) or b""))
    status = 0
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(_CHUNK)))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > largest:
                raise _error(endpoint, f"the answer is larger than {largest >> 20} MiB; is this its --admin?")
        elif isinstance(event, h11.EndOfMessage):
            return status, bytes(body)


def _error(endpoint: Endpoint, text: str) -> StartError:
    return StartError(f"--admin {endpoint}: {text}", status=_UNREACHABLE)


def _cause(error: BaseException) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"not within {CONNECT_SECONDS} s"
    text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return one_line(text) or type(error).__name__
