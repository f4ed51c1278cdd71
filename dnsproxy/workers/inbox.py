"""An inbox: the messages that arrive on a stream socket, and the descriptors that come with them.

The law: it ends with the other end, however that ends; a message is decoded once it is whole.
"""

from __future__ import annotations

import array
import socket
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final, TypeVar

import msgspec
import trio

from dnsproxy.workers.messages import Frames

_CHUNK: Final = 1 << 14
"""Octets received in one call: rows whose decoding takes a fraction of a slice."""
_INT: Final = array.array("i").itemsize
_ROOM: Final = socket.CMSG_SPACE(16 * _INT)
M = TypeVar("M")


async def receive(
    sock: trio.socket.SocketType, decoder: msgspec.msgpack.Decoder[M], *, descriptors: deque[int] | None = None
) -> AsyncGenerator[M, None]:
    """The messages on a stream socket until the other end is closed.

    `descriptors` gets those that come with messages, in their order; without it there is no room for any.
    """
    frames = Frames()
    while octets := await _receive_some(sock, descriptors):
        for message in frames.feed(octets, decoder):
            yield message


async def _receive_some(sock: trio.socket.SocketType, descriptors: deque[int] | None) -> bytes:
    """The next octets; none at the end."""
    try:
        if descriptors is None:
            return await sock.recv(_CHUNK)
        octets, ancillary, _, _ = await sock.recvmsg(_CHUNK, _ROOM)
    except ConnectionError:
        return b""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.extend(array.array("i", data[: len(data) // _INT * _INT]))
    return octets
