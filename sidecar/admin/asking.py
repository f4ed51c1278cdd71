"""Asks the admin port of a running server: one GET and one answer, both within limits.

The law: time and memory are bounded, also if another program or a broken server listens there. The result is an answer
or an error of one line that says what to do.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import h11
import trio

from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import message_of, one_line

LARGEST: Final = 256 << 20
"""Octets of an answer: 500,000 names take 100 MB, and twice that if all are long."""
CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 70
"""For the whole answer; a little more than the server allows itself."""

_CHUNK: Final = 65_536
_SHOWN: Final = 200
_OK: Final = 200
_NOT_MODIFIED: Final = 304
_NOT_FOUND: Final = 404
_ACCEPT: Final = MappingProxyType({"Accept": "application/json"})


class NoAnswer(Exception):
    """There is no usable answer; the message is one line."""

    def __init__(self, message: str, *, status: int = 0, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status of the answer; 0 without an answer."""
        self.said = said
        """The beginning of the body, on one line."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer."""

    body: bytes
    tag: str = ""
    """The entity tag as received; empty without one."""
    modified: bool = True
    """False if the tag in the request is still current; the body is empty then."""


async def ask(endpoint: Endpoint, target: str, *, program: str, largest: int = LARGEST) -> bytes:
    """The body of the answer to `GET target`; `program` is the command expected there, for messages.

    Raises StartError with status 3, which names --admin.
    """
    try:
        return (await get(endpoint, target, program=program, largest=largest)).body
    except NoAnswer as error:
        raise StartError(f"--admin {endpoint}: {error}", status=ExitStatus.UNKNOWN) from None


async def get(
    endpoint: Endpoint,
    target: str,
    *,
    program: str,
    largest: int = LARGEST,
    headers: Mapping[str, str] = _ACCEPT,
) -> Reply:
    """The answer to `GET target`; `program` is the command expected there, for messages. Raises NoAnswer."""
    stream = await connect(endpoint, program=program)
    try:
        with trio.fail_after(ANSWER_SECONDS):
            async with stream:
                status, reply = await _exchange(stream, endpoint, target, largest, headers)
    except trio.TooSlowError:
        raise NoAnswer(f"no complete answer within {ANSWER_SECONDS} s") from None
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        raise incomplete(error) from None
    if status != _NOT_MODIFIED or "If-None-Match" not in headers:
        check_status(status, reply.body, target, program=program)
    return reply


async def connect(endpoint: Endpoint, *, program: str) -> trio.SocketStream:
    """A connection to the admin port. Raises NoAnswer."""
    try:
        with trio.fail_after(CONNECT_SECONDS):
            return await _connect(endpoint)
    except (OSError, trio.TooSlowError) as error:
        raise NoAnswer(
            f"no server answers there ({_cause(error)}); is `{program}` running, and is this its --admin?"
        ) from None


def format_request(
    http: h11.Connection, endpoint: Endpoint, target: str, headers: Mapping[str, str] = _ACCEPT
) -> bytes:
    """The octets of `GET target`, for the only request of a connection."""
    fields = [("Host", str(endpoint)), ("Connection", "close"), *headers.items()]
    request = http.send(h11.Request(method="GET", target=target, headers=fields)) or b""
    return request + (http.send(h11.EndOfMessage()) or b"")


def check_status(status: int, body: bytes, target: str, *, program: str) -> None:
    """Raises NoAnswer for any status but 200, with what the server said."""
    if status == _NOT_FOUND:
        path = target.partition("?")[0]
        raise NoAnswer(f"the server there has no {path}; it is no `{program}`, or an older one")
    if status != _OK:
        said = one_line(body[:_SHOWN].decode(errors="replace"))
        raise NoAnswer(f"the server there answers {status}: {said}", status=status, said=said)


def incomplete(error: trio.BrokenResourceError | h11.ProtocolError) -> NoAnswer:
    """The error for an answer that was cut short, or is no HTTP."""
    return NoAnswer(f"the answer is not complete HTTP ({_cause(error)}); is this its --admin?")


async def _connect(endpoint: Endpoint) -> trio.SocketStream:
    """open_tcp_stream would hide why a connection to an address literal failed."""
    connecting = trio.socket.socket(socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        await connecting.connect((endpoint.host, endpoint.port))
    except BaseException:
        connecting.close()
        raise
    return trio.SocketStream(connecting)


async def _exchange(
    stream: trio.SocketStream, endpoint: Endpoint, target: str, largest: int, headers: Mapping[str, str]
) -> tuple[int, Reply]:
    http = h11.Connection(h11.CLIENT)
    await stream.send_all(format_request(http, endpoint, target, headers))
    status, tag = 0, ""
    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(_CHUNK)))
        elif isinstance(event, h11.Response):
            status = event.status_code
            tag = next((value.decode("latin-1") for name, value in event.headers if name == b"etag"), "")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > largest:
                raise NoAnswer(f"the answer is larger than {largest >> 20} MiB; is this its --admin?")
        elif isinstance(event, h11.EndOfMessage):
            return status, Reply(bytes(body), tag, modified=status != _NOT_MODIFIED)


def _cause(error: BaseException) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"not within {CONNECT_SECONDS} s"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return message_of(error) or type(error).__name__
