"""Follows a live answer of an admin port: its lines as they come.

The law: the answer may last for ever, but a silent server is noticed: it sends an empty line every few seconds
(live_answers.py). Memory is bounded also if another program listens there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

import h11
import trio

from sidecar.admin.asking import NoAnswer, check_status, connect, format_request, incomplete
from sidecar.values.endpoints import Endpoint

SILENCE_SECONDS: Final = 20.0
"""Without any octet. The server sends one every five seconds."""
LONGEST_LINE: Final = 65_536

_CHUNK: Final = 65_536
_OK: Final = 200


async def follow(
    endpoint: Endpoint, target: str, *, program: str, on_answer: Callable[[], None] = lambda: None
) -> AsyncGenerator[bytes, None]:
    """The lines of the live answer to `GET target`, without their ends, and without empty ones.

    `on_answer` is called when the answer begins; a quiet server has no line for a long time. Ends when the server ends
    the answer. `program` is the command expected there, for messages. Raises NoAnswer, also for an answer that was cut
    short. Close it (aclosing) to end the connection.
    """
    stream = await connect(endpoint, program=program)
    try:
        http = h11.Connection(h11.CLIENT)
        await _begin(stream, http, endpoint, target, program)
        on_answer()
        left = b""
        while (data := await _receive_data(stream, http)) is not None:
            *lines, left = (left + data).split(b"\n")
            if max(map(len, (left, *lines))) > LONGEST_LINE:
                raise NoAnswer(f"a line is longer than {LONGEST_LINE >> 10} KiB; is this its --admin?")
            for line in filter(None, lines):
                yield line
        if left:
            yield left
    finally:
        # Not aclose(): a generator that is only dropped could not wait for it.
        stream.socket.close()


async def _begin(
    stream: trio.SocketStream, http: h11.Connection, endpoint: Endpoint, target: str, program: str
) -> None:
    """Send the request and check the status of the answer. Raises NoAnswer."""
    try:
        with trio.fail_after(SILENCE_SECONDS):
            await stream.send_all(format_request(http, endpoint, target))
            status = await _receive_status(stream, http)
            if status != _OK:
                check_status(status, await _receive_beginning(stream, http), target, program=program)
    except trio.TooSlowError:
        raise NoAnswer(f"no answer within {SILENCE_SECONDS:g} s") from None
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        raise incomplete(error) from None


async def _receive_event(stream: trio.SocketStream, http: h11.Connection) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(bytes(await stream.receive_some(_CHUNK)))
    return event


async def _receive_status(stream: trio.SocketStream, http: h11.Connection) -> int:
    while not isinstance(event := await _receive_event(stream, http), h11.Response):
        pass
    return event.status_code


async def _receive_beginning(stream: trio.SocketStream, http: h11.Connection) -> bytes:
    """What the server says with an error; more than the first piece is not shown."""
    event = await _receive_event(stream, http)
    return bytes(event.data) if isinstance(event, h11.Data) else b""


async def _receive_data(stream: trio.SocketStream, http: h11.Connection) -> bytes | None:
    """The next piece of the answer; None at its end. Raises NoAnswer."""
    try:
        with trio.fail_after(SILENCE_SECONDS):
            event = await _receive_event(stream, http)
    except trio.TooSlowError:
        raise NoAnswer(f"the server there has been silent for {SILENCE_SECONDS:g} s") from None
    except (trio.BrokenResourceError, h11.ProtocolError) as error:
        raise incomplete(error) from None
    return bytes(event.data) if isinstance(event, h11.Data) else None
